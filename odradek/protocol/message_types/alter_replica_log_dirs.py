"""AlterReplicaLogDirs up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AlterReplicaLogDirTopic(NamedTuple):
    """A struct of the AlterReplicaLogDirs request."""

    name: str = ""
    partitions: Sequence[int] = ()


class AlterReplicaLogDir(NamedTuple):
    """A struct of the AlterReplicaLogDirs request."""

    path: str = ""
    topics: Sequence[AlterReplicaLogDirTopic] = ()


class AlterReplicaLogDirsRequest(NamedTuple):
    """The AlterReplicaLogDirs request."""

    dirs: Sequence[AlterReplicaLogDir] = ()


class AlterReplicaLogDirPartitionResult(NamedTuple):
    """A struct of the AlterReplicaLogDirs response."""

    partition_index: int = 0
    error_code: int = 0


class AlterReplicaLogDirTopicResult(NamedTuple):
    """A struct of the AlterReplicaLogDirs response."""

    topic_name: str = ""
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = ()


class AlterReplicaLogDirsResponse(NamedTuple):
    """The AlterReplicaLogDirs response."""

    throttle_time_ms: int = 0
    results: Sequence[AlterReplicaLogDirTopicResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AlterReplicaLogDirTopic": AlterReplicaLogDirTopic,
    "AlterReplicaLogDir": AlterReplicaLogDir,
    "AlterReplicaLogDirsRequest": AlterReplicaLogDirsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AlterReplicaLogDirPartitionResult": AlterReplicaLogDirPartitionResult,
    "AlterReplicaLogDirTopicResult": AlterReplicaLogDirTopicResult,
    "AlterReplicaLogDirsResponse": AlterReplicaLogDirsResponse,
}

REQUEST_FIELDS: Final = """
AlterReplicaLogDirsRequest 1-2 flexible 2+
 dirs []AlterReplicaLogDir
  path string
  topics []AlterReplicaLogDirTopic
   name string
   partitions []int32
"""
RESPONSE_FIELDS: Final = """
AlterReplicaLogDirsResponse 1-2 flexible 2+
 throttle_time_ms int32
 results []AlterReplicaLogDirTopicResult
  topic_name string
  partitions []AlterReplicaLogDirPartitionResult
   partition_index int32
   error_code int16
"""
