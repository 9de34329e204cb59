"""AlterPartitionReassignments up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ReassignablePartition(NamedTuple):
    """A struct of the AlterPartitionReassignments request."""

    partition_index: int = 0
    replicas: Sequence[int] | None = None


class ReassignableTopic(NamedTuple):
    """A struct of the AlterPartitionReassignments request."""

    name: str = ""
    partitions: Sequence[ReassignablePartition] = ()


class AlterPartitionReassignmentsRequest(NamedTuple):
    """The AlterPartitionReassignments request."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: Sequence[ReassignableTopic] = ()


class ReassignablePartitionResponse(NamedTuple):
    """A struct of the AlterPartitionReassignments response."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


class ReassignableTopicResponse(NamedTuple):
    """A struct of the AlterPartitionReassignments response."""

    name: str = ""
    partitions: Sequence[ReassignablePartitionResponse] = ()


class AlterPartitionReassignmentsResponse(NamedTuple):
    """The AlterPartitionReassignments response."""

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[ReassignableTopicResponse] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ReassignablePartition": ReassignablePartition,
    "ReassignableTopic": ReassignableTopic,
    "AlterPartitionReassignmentsRequest": AlterPartitionReassignmentsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ReassignablePartitionResponse": ReassignablePartitionResponse,
    "ReassignableTopicResponse": ReassignableTopicResponse,
    "AlterPartitionReassignmentsResponse": AlterPartitionReassignmentsResponse,
}

REQUEST_FIELDS: Final = """
AlterPartitionReassignmentsRequest 0-1 flexible 0+
 timeout_ms int32 = 60000
 allow_replication_factor_change bool 1+ = true
 topics []ReassignableTopic
  name string
  partitions []ReassignablePartition
   partition_index int32
   replicas []int32 null = null
"""
RESPONSE_FIELDS: Final = """
AlterPartitionReassignmentsResponse 0-1 flexible 0+
 throttle_time_ms int32
 allow_replication_factor_change bool 1+ = true
 error_code int16
 error_message string null
 responses []ReassignableTopicResponse
  name string
  partitions []ReassignablePartitionResponse
   partition_index int32
   error_code int16
   error_message string null
"""
