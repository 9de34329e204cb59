"""ListPartitionReassignments up to version 0. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ListPartitionReassignmentsTopics(NamedTuple):
    """A struct of the ListPartitionReassignments request."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class ListPartitionReassignmentsRequest(NamedTuple):
    """The ListPartitionReassignments request."""

    timeout_ms: int = 60000
    topics: Sequence[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(NamedTuple):
    """A struct of the ListPartitionReassignments response."""

    partition_index: int = 0
    replicas: Sequence[int] = ()
    adding_replicas: Sequence[int] = ()
    removing_replicas: Sequence[int] = ()


class OngoingTopicReassignment(NamedTuple):
    """A struct of the ListPartitionReassignments response."""

    name: str = ""
    partitions: Sequence[OngoingPartitionReassignment] = ()


class ListPartitionReassignmentsResponse(NamedTuple):
    """The ListPartitionReassignments response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: Sequence[OngoingTopicReassignment] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ListPartitionReassignmentsTopics": ListPartitionReassignmentsTopics,
    "ListPartitionReassignmentsRequest": ListPartitionReassignmentsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "OngoingPartitionReassignment": OngoingPartitionReassignment,
    "OngoingTopicReassignment": OngoingTopicReassignment,
    "ListPartitionReassignmentsResponse": ListPartitionReassignmentsResponse,
}

REQUEST_FIELDS: Final = """
ListPartitionReassignmentsRequest 0 flexible 0+
 timeout_ms int32 = 60000
 topics []ListPartitionReassignmentsTopics null = null
  name string
  partition_indexes []int32
"""
RESPONSE_FIELDS: Final = """
ListPartitionReassignmentsResponse 0 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
 topics []OngoingTopicReassignment
  name string
  partitions []OngoingPartitionReassignment
   partition_index int32
   replicas []int32
   adding_replicas []int32
   removing_replicas []int32
"""
