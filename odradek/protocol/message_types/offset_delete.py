"""OffsetDelete up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class OffsetDeleteRequestPartition(NamedTuple):
    """A struct of the OffsetDelete request."""

    partition_index: int = 0


class OffsetDeleteRequestTopic(NamedTuple):
    """A struct of the OffsetDelete request."""

    name: str = ""
    partitions: Sequence[OffsetDeleteRequestPartition] = ()


class OffsetDeleteRequest(NamedTuple):
    """The OffsetDelete request."""

    group_id: str = ""
    topics: Sequence[OffsetDeleteRequestTopic] = ()


class OffsetDeleteResponsePartition(NamedTuple):
    """A struct of the OffsetDelete response."""

    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(NamedTuple):
    """A struct of the OffsetDelete response."""

    name: str = ""
    partitions: Sequence[OffsetDeleteResponsePartition] = ()


class OffsetDeleteResponse(NamedTuple):
    """The OffsetDelete response."""

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: Sequence[OffsetDeleteResponseTopic] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "OffsetDeleteRequestPartition": OffsetDeleteRequestPartition,
    "OffsetDeleteRequestTopic": OffsetDeleteRequestTopic,
    "OffsetDeleteRequest": OffsetDeleteRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "OffsetDeleteResponsePartition": OffsetDeleteResponsePartition,
    "OffsetDeleteResponseTopic": OffsetDeleteResponseTopic,
    "OffsetDeleteResponse": OffsetDeleteResponse,
}

REQUEST_FIELDS: Final = """
OffsetDeleteRequest 0
 group_id string
 topics []OffsetDeleteRequestTopic
  name string
  partitions []OffsetDeleteRequestPartition
   partition_index int32
"""
RESPONSE_FIELDS: Final = """
OffsetDeleteResponse 0
 error_code int16
 throttle_time_ms int32
 topics []OffsetDeleteResponseTopic
  name string
  partitions []OffsetDeleteResponsePartition
   partition_index int32
   error_code int16
"""
