"""ShareGroupHeartbeat up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class ShareGroupHeartbeatRequest(NamedTuple):
    """The ShareGroupHeartbeat request."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: Sequence[str] | None = None


class TopicPartitions(NamedTuple):
    """A struct of the ShareGroupHeartbeat response."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """A struct of the ShareGroupHeartbeat response."""

    topic_partitions: Sequence[TopicPartitions] = ()


class ShareGroupHeartbeatResponse(NamedTuple):
    """The ShareGroupHeartbeat response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


REQUEST: Final[dict[str, type[Any]]] = {
    "ShareGroupHeartbeatRequest": ShareGroupHeartbeatRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "TopicPartitions": TopicPartitions,
    "Assignment": Assignment,
    "ShareGroupHeartbeatResponse": ShareGroupHeartbeatResponse,
}

REQUEST_FIELDS: Final = """
ShareGroupHeartbeatRequest 1 flexible 0+
 group_id string
 member_id string
 member_epoch int32
 rack_id string null = null
 subscribed_topic_names []string null = null
"""
RESPONSE_FIELDS: Final = """
ShareGroupHeartbeatResponse 1 flexible 0+
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
