"""OffsetFetch up to version 10. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class OffsetFetchRequestTopics(NamedTuple):
    """A struct of the OffsetFetch request."""

    topic_id: UUID | None = None
    partition_indexes: Sequence[int] = ()
    name: str = ""


class OffsetFetchRequestGroup(NamedTuple):
    """A struct of the OffsetFetch request."""

    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = ()


class OffsetFetchRequest(NamedTuple):
    """The OffsetFetch request."""

    groups: Sequence[OffsetFetchRequestGroup] = ()
    require_stable: bool = False


class OffsetFetchResponsePartitions(NamedTuple):
    """A struct of the OffsetFetch response."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


class OffsetFetchResponseTopics(NamedTuple):
    """A struct of the OffsetFetch response."""

    topic_id: UUID | None = None
    partitions: Sequence[OffsetFetchResponsePartitions] = ()
    name: str = ""


class OffsetFetchResponseGroup(NamedTuple):
    """A struct of the OffsetFetch response."""

    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: int = 0


class OffsetFetchResponse(NamedTuple):
    """The OffsetFetch response."""

    throttle_time_ms: int = 0
    groups: Sequence[OffsetFetchResponseGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "OffsetFetchRequestTopics": OffsetFetchRequestTopics,
    "OffsetFetchRequestGroup": OffsetFetchRequestGroup,
    "OffsetFetchRequest": OffsetFetchRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "OffsetFetchResponsePartitions": OffsetFetchResponsePartitions,
    "OffsetFetchResponseTopics": OffsetFetchResponseTopics,
    "OffsetFetchResponseGroup": OffsetFetchResponseGroup,
    "OffsetFetchResponse": OffsetFetchResponse,
}

REQUEST_FIELDS: Final = """
OffsetFetchRequest 1-10 flexible 6+
 group_id string -7
 topics []OffsetFetchRequestTopic -7 null 2-7
  name string -7
  partition_indexes []int32 -7
 groups []OffsetFetchRequestGroup 8+
  group_id string 8+
  member_id string 9+ null 9+ = null
  member_epoch int32 9+ = -1
  topics []OffsetFetchRequestTopics 8+ null 8+
   name string 8-9
   topic_id uuid 10+
   partition_indexes []int32 8+
 require_stable bool 7+ = false
"""
RESPONSE_FIELDS: Final = """
OffsetFetchResponse 1-10 flexible 6+
 throttle_time_ms int32 3+
 topics []OffsetFetchResponseTopic -7
  name string -7
  partitions []OffsetFetchResponsePartition -7
   partition_index int32 -7
   committed_offset int64 -7
   committed_leader_epoch int32 5-7 = -1
   metadata string -7 null -7
   error_code int16 -7
 error_code int16 2-7 = 0
 groups []OffsetFetchResponseGroup 8+
  group_id string 8+
  topics []OffsetFetchResponseTopics 8+
   name string 8-9
   topic_id uuid 10+
   partitions []OffsetFetchResponsePartitions 8+
    partition_index int32 8+
    committed_offset int64 8+
    committed_leader_epoch int32 8+ = -1
    metadata string 8+ null 8+
    error_code int16 8+
  error_code int16 8+ = 0
"""
