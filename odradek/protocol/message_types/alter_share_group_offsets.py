"""AlterShareGroupOffsets up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class AlterShareGroupOffsetsRequestPartition(NamedTuple):
    """A struct of the AlterShareGroupOffsets request."""

    partition_index: int = 0
    start_offset: int = 0


class AlterShareGroupOffsetsRequestTopic(NamedTuple):
    """A struct of the AlterShareGroupOffsets request."""

    topic_name: str = ""
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = ()


class AlterShareGroupOffsetsRequest(NamedTuple):
    """The AlterShareGroupOffsets request."""

    group_id: str = ""
    topics: Sequence[AlterShareGroupOffsetsRequestTopic] = ()


class AlterShareGroupOffsetsResponsePartition(NamedTuple):
    """A struct of the AlterShareGroupOffsets response."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


class AlterShareGroupOffsetsResponseTopic(NamedTuple):
    """A struct of the AlterShareGroupOffsets response."""

    topic_name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = ()


class AlterShareGroupOffsetsResponse(NamedTuple):
    """The AlterShareGroupOffsets response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[AlterShareGroupOffsetsResponseTopic] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AlterShareGroupOffsetsRequestPartition": AlterShareGroupOffsetsRequestPartition,
    "AlterShareGroupOffsetsRequestTopic": AlterShareGroupOffsetsRequestTopic,
    "AlterShareGroupOffsetsRequest": AlterShareGroupOffsetsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AlterShareGroupOffsetsResponsePartition": AlterShareGroupOffsetsResponsePartition,
    "AlterShareGroupOffsetsResponseTopic": AlterShareGroupOffsetsResponseTopic,
    "AlterShareGroupOffsetsResponse": AlterShareGroupOffsetsResponse,
}

REQUEST_FIELDS: Final = """
AlterShareGroupOffsetsRequest 0 flexible 0+
 group_id string
 topics []AlterShareGroupOffsetsRequestTopic
  topic_name string
  partitions []AlterShareGroupOffsetsRequestPartition
   partition_index int32
   start_offset int64
"""
RESPONSE_FIELDS: Final = """
AlterShareGroupOffsetsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 responses []AlterShareGroupOffsetsResponseTopic
  topic_name string
  topic_id uuid
  partitions []AlterShareGroupOffsetsResponsePartition
   partition_index int32
   error_code int16
   error_message string null = null
"""
