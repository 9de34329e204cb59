"""DescribeTopicPartitions up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class TopicRequest(NamedTuple):
    """A struct of the DescribeTopicPartitions request."""

    name: str = ""


class RequestCursor(NamedTuple):
    """A struct of the DescribeTopicPartitions request."""

    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequest(NamedTuple):
    """The DescribeTopicPartitions request."""

    topics: Sequence[TopicRequest] = ()
    response_partition_limit: int = 2000
    cursor: RequestCursor | None = None


class DescribeTopicPartitionsResponsePartition(NamedTuple):
    """A struct of the DescribeTopicPartitions response."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] | None = None
    last_known_elr: Sequence[int] | None = None
    offline_replicas: Sequence[int] = ()


class DescribeTopicPartitionsResponseTopic(NamedTuple):
    """A struct of the DescribeTopicPartitions response."""

    error_code: int = 0
    name: str | None = None
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class Cursor(NamedTuple):
    """A struct of the DescribeTopicPartitions response."""

    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsResponse(NamedTuple):
    """The DescribeTopicPartitions response."""

    throttle_time_ms: int = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "TopicRequest": TopicRequest,
    "Cursor": RequestCursor,
    "DescribeTopicPartitionsRequest": DescribeTopicPartitionsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribeTopicPartitionsResponsePartition": DescribeTopicPartitionsResponsePartition,
    "DescribeTopicPartitionsResponseTopic": DescribeTopicPartitionsResponseTopic,
    "Cursor": Cursor,
    "DescribeTopicPartitionsResponse": DescribeTopicPartitionsResponse,
}

REQUEST_FIELDS: Final = """
DescribeTopicPartitionsRequest 0 flexible 0+
 topics []TopicRequest
  name string
 response_partition_limit int32 = 2000
 cursor Cursor null = null
  topic_name string
  partition_index int32
"""
RESPONSE_FIELDS: Final = """
DescribeTopicPartitionsResponse 0 flexible 0+
 throttle_time_ms int32
 topics []DescribeTopicPartitionsResponseTopic
  error_code int16
  name string null
  topic_id uuid
  is_internal bool = false
  partitions []DescribeTopicPartitionsResponsePartition
   error_code int16
   partition_index int32
   leader_id int32
   leader_epoch int32 = -1
   replica_nodes []int32
   isr_nodes []int32
   eligible_leader_replicas []int32 null = null
   last_known_elr []int32 null = null
   offline_replicas []int32
  topic_authorized_operations int32 = -2147483648
 next_cursor Cursor null = null
  topic_name string
  partition_index int32
"""
