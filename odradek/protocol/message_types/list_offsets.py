"""ListOffsets up to version 11. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ListOffsetsPartition(NamedTuple):
    """A struct of the ListOffsets request."""

    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


class ListOffsetsTopic(NamedTuple):
    """A struct of the ListOffsets request."""

    name: str = ""
    partitions: Sequence[ListOffsetsPartition] = ()


class ListOffsetsRequest(NamedTuple):
    """The ListOffsets request."""

    replica_id: int = 0
    isolation_level: int = 0
    topics: Sequence[ListOffsetsTopic] = ()
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(NamedTuple):
    """A struct of the ListOffsets response."""

    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(NamedTuple):
    """A struct of the ListOffsets response."""

    name: str = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponse(NamedTuple):
    """The ListOffsets response."""

    throttle_time_ms: int = 0
    topics: Sequence[ListOffsetsTopicResponse] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ListOffsetsPartition": ListOffsetsPartition,
    "ListOffsetsTopic": ListOffsetsTopic,
    "ListOffsetsRequest": ListOffsetsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ListOffsetsPartitionResponse": ListOffsetsPartitionResponse,
    "ListOffsetsTopicResponse": ListOffsetsTopicResponse,
    "ListOffsetsResponse": ListOffsetsResponse,
}

REQUEST_FIELDS: Final = """
ListOffsetsRequest 1-11 flexible 6+
 replica_id int32
 isolation_level int8 2+
 topics []ListOffsetsTopic
  name string
  partitions []ListOffsetsPartition
   partition_index int32
   current_leader_epoch int32 4+ = -1
   timestamp int64
 timeout_ms int32 10+
"""
RESPONSE_FIELDS: Final = """
ListOffsetsResponse 1-11 flexible 6+
 throttle_time_ms int32 2+
 topics []ListOffsetsTopicResponse
  name string
  partitions []ListOffsetsPartitionResponse
   partition_index int32
   error_code int16
   timestamp int64 = -1
   offset int64 = -1
   leader_epoch int32 4+ = -1
"""
