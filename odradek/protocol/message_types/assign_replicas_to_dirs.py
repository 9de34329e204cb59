"""AssignReplicasToDirs up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class RequestPartitionData(NamedTuple):
    """A struct of the AssignReplicasToDirs request."""

    partition_index: int = 0


class RequestTopicData(NamedTuple):
    """A struct of the AssignReplicasToDirs request."""

    topic_id: UUID | None = None
    partitions: Sequence[RequestPartitionData] = ()


class RequestDirectoryData(NamedTuple):
    """A struct of the AssignReplicasToDirs request."""

    id: UUID | None = None
    topics: Sequence[RequestTopicData] = ()


class AssignReplicasToDirsRequest(NamedTuple):
    """The AssignReplicasToDirs request."""

    broker_id: int = 0
    broker_epoch: int = -1
    directories: Sequence[RequestDirectoryData] = ()


class PartitionData(NamedTuple):
    """A struct of the AssignReplicasToDirs response."""

    partition_index: int = 0
    error_code: int = 0


class TopicData(NamedTuple):
    """A struct of the AssignReplicasToDirs response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class DirectoryData(NamedTuple):
    """A struct of the AssignReplicasToDirs response."""

    id: UUID | None = None
    topics: Sequence[TopicData] = ()


class AssignReplicasToDirsResponse(NamedTuple):
    """The AssignReplicasToDirs response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    directories: Sequence[DirectoryData] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": RequestPartitionData,
    "TopicData": RequestTopicData,
    "DirectoryData": RequestDirectoryData,
    "AssignReplicasToDirsRequest": AssignReplicasToDirsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "TopicData": TopicData,
    "DirectoryData": DirectoryData,
    "AssignReplicasToDirsResponse": AssignReplicasToDirsResponse,
}

REQUEST_FIELDS: Final = """
AssignReplicasToDirsRequest 0 flexible 0+
 broker_id int32
 broker_epoch int64 = -1
 directories []DirectoryData
  id uuid
  topics []TopicData
   topic_id uuid
   partitions []PartitionData
    partition_index int32
"""
RESPONSE_FIELDS: Final = """
AssignReplicasToDirsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 directories []DirectoryData
  id uuid
  topics []TopicData
   topic_id uuid
   partitions []PartitionData
    partition_index int32
    error_code int16
"""
