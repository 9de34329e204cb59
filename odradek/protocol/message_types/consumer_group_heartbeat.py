"""ConsumerGroupHeartbeat up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class RequestTopicPartitions(NamedTuple):
    """A struct of the ConsumerGroupHeartbeat request."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class ConsumerGroupHeartbeatRequest(NamedTuple):
    """The ConsumerGroupHeartbeat request."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Sequence[RequestTopicPartitions] | None = None


class TopicPartitions(NamedTuple):
    """A struct of the ConsumerGroupHeartbeat response."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """A struct of the ConsumerGroupHeartbeat response."""

    topic_partitions: Sequence[TopicPartitions] = ()


class ConsumerGroupHeartbeatResponse(NamedTuple):
    """The ConsumerGroupHeartbeat response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "TopicPartitions": RequestTopicPartitions,
    "ConsumerGroupHeartbeatRequest": ConsumerGroupHeartbeatRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "TopicPartitions": TopicPartitions,
    "Assignment": Assignment,
    "ConsumerGroupHeartbeatResponse": ConsumerGroupHeartbeatResponse,
}

REQUEST_FIELDS: Final = """
ConsumerGroupHeartbeatRequest 0-1 flexible 0+
 group_id string
 member_id string
 member_epoch int32
 instance_id string null = null
 rack_id string null = null
 rebalance_timeout_ms int32 = -1
 subscribed_topic_names []string null = null
 subscribed_topic_regex string 1+ null 1+ = null
 server_assignor string null = null
 topic_partitions []TopicPartitions null = null
  topic_id uuid
  partitions []int32
"""
RESPONSE_FIELDS: Final = """
ConsumerGroupHeartbeatResponse 0-1 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 member_id string null = null
 member_epoch int32
 heartbeat_interval_ms int32
 assignment Assignment null = null
  topic_partitions []TopicPartitions
   topic_id uuid
   partitions []int32
"""
