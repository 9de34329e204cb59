"""DescribeShareGroupOffsets up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class DescribeShareGroupOffsetsRequestTopic(NamedTuple):
    """A struct of the DescribeShareGroupOffsets request."""

    topic_name: str = ""
    partitions: Sequence[int] = ()


class DescribeShareGroupOffsetsRequestGroup(NamedTuple):
    """A struct of the DescribeShareGroupOffsets request."""

    group_id: str = ""
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = ()


class DescribeShareGroupOffsetsRequest(NamedTuple):
    """The DescribeShareGroupOffsets request."""

    groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = ()


class DescribeShareGroupOffsetsResponsePartition(NamedTuple):
    """A struct of the DescribeShareGroupOffsets response."""

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponseTopic(NamedTuple):
    """A struct of the DescribeShareGroupOffsets response."""

    topic_name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = ()


class DescribeShareGroupOffsetsResponseGroup(NamedTuple):
    """A struct of the DescribeShareGroupOffsets response."""

    group_id: str = ""
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = ()
    error_code: int = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponse(NamedTuple):
    """The DescribeShareGroupOffsets response."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeShareGroupOffsetsRequestTopic": DescribeShareGroupOffsetsRequestTopic,
    "DescribeShareGroupOffsetsRequestGroup": DescribeShareGroupOffsetsRequestGroup,
    "DescribeShareGroupOffsetsRequest": DescribeShareGroupOffsetsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribeShareGroupOffsetsResponsePartition": DescribeShareGroupOffsetsResponsePartition,
    "DescribeShareGroupOffsetsResponseTopic": DescribeShareGroupOffsetsResponseTopic,
    "DescribeShareGroupOffsetsResponseGroup": DescribeShareGroupOffsetsResponseGroup,
    "DescribeShareGroupOffsetsResponse": DescribeShareGroupOffsetsResponse,
}

REQUEST_FIELDS: Final = """
DescribeShareGroupOffsetsRequest 0-1 flexible 0+
 groups []DescribeShareGroupOffsetsRequestGroup
  group_id string
  topics []DescribeShareGroupOffsetsRequestTopic null
   topic_name string
   partitions []int32
"""
RESPONSE_FIELDS: Final = """
DescribeShareGroupOffsetsResponse 0-1 flexible 0+
 throttle_time_ms int32
 groups []DescribeShareGroupOffsetsResponseGroup
  group_id string
  topics []DescribeShareGroupOffsetsResponseTopic
   topic_name string
   topic_id uuid
   partitions []DescribeShareGroupOffsetsResponsePartition
    partition_index int32
    start_offset int64
    leader_epoch int32
    lag int64 1+ = -1
    error_code int16
    error_message string null = null
  error_code int16
  error_message string null = null
"""
