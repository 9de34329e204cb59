"""ElectLeaders up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class TopicPartitions(NamedTuple):
    """A struct of the ElectLeaders request."""

    topic: str = ""
    partitions: Sequence[int] = ()


class ElectLeadersRequest(NamedTuple):
    """The ElectLeaders request."""

    election_type: int = 0
    topic_partitions: Sequence[TopicPartitions] | None = ()
    timeout_ms: int = 60000


class PartitionResult(NamedTuple):
    """A struct of the ElectLeaders response."""

    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = None


class ReplicaElectionResult(NamedTuple):
    """A struct of the ElectLeaders response."""

    topic: str = ""
    partition_result: Sequence[PartitionResult] = ()


class ElectLeadersResponse(NamedTuple):
    """The ElectLeaders response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: Sequence[ReplicaElectionResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "TopicPartitions": TopicPartitions,
    "ElectLeadersRequest": ElectLeadersRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionResult": PartitionResult,
    "ReplicaElectionResult": ReplicaElectionResult,
    "ElectLeadersResponse": ElectLeadersResponse,
}

REQUEST_FIELDS: Final = """
ElectLeadersRequest 0-2 flexible 2+
 election_type int8 1+
 topic_partitions []TopicPartitions null
  topic string
  partitions []int32
 timeout_ms int32 = 60000
"""
RESPONSE_FIELDS: Final = """
ElectLeadersResponse 0-2 flexible 2+
 throttle_time_ms int32
 error_code int16 1+
 replica_election_results []ReplicaElectionResult
  topic string
  partition_result []PartitionResult
   partition_id int32
   error_code int16
   error_message string null
"""
