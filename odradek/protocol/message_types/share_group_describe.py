"""ShareGroupDescribe up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class ShareGroupDescribeRequest(NamedTuple):
    """The ShareGroupDescribe request."""

    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


class TopicPartitions(NamedTuple):
    """A struct of the ShareGroupDescribe response."""

    topic_id: UUID | None = None
    topic_name: str = ""
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """A struct of the ShareGroupDescribe response."""

    topic_partitions: Sequence[TopicPartitions] = ()


class Member(NamedTuple):
    """A struct of the ShareGroupDescribe response."""

    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    assignment: Assignment = Assignment()


class DescribedGroup(NamedTuple):
    """A struct of the ShareGroupDescribe response."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[Member] = ()
    authorized_operations: int = -2147483648


class ShareGroupDescribeResponse(NamedTuple):
    """The ShareGroupDescribe response."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ShareGroupDescribeRequest": ShareGroupDescribeRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "TopicPartitions": TopicPartitions,
    "Assignment": Assignment,
    "Member": Member,
    "DescribedGroup": DescribedGroup,
    "ShareGroupDescribeResponse": ShareGroupDescribeResponse,
}

REQUEST_FIELDS: Final = """
ShareGroupDescribeRequest 1 flexible 0+
 group_ids []string
 include_authorized_operations bool
"""
RESPONSE_FIELDS: Final = """
ShareGroupDescribeResponse 1 flexible 0+
 throttle_time_ms int32
 groups []DescribedGroup
  error_code int16
  error_message string null = null
  group_id string
  group_state string
  group_epoch int32
  assignment_epoch int32
  assignor_name string
  members []Member
   member_id string
   rack_id string null = null
   member_epoch int32
   client_id string
   client_host string
   subscribed_topic_names []string
   assignment Assignment
    topic_partitions []TopicPartitions
     topic_id uuid
     topic_name string
     partitions []int32
  authorized_operations int32 = -2147483648
"""
