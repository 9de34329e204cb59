"""Produce up to version 13. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.protocol.produce_request import ProduceRequest


class BatchIndexAndErrorMessage(NamedTuple):
    """A struct of the Produce response."""

    batch_index: int = 0
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(NamedTuple):
    """A struct of the Produce response."""

    leader_id: int = -1
    leader_epoch: int = -1


class PartitionProduceResponse(NamedTuple):
    """A struct of the Produce response."""

    index: int = 0  # type: ignore[assignment]
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class TopicProduceResponse(NamedTuple):
    """A struct of the Produce response."""

    topic_id: UUID | None = None
    partition_responses: Sequence[PartitionProduceResponse] = ()
    name: str = ""


class NodeEndpoint(NamedTuple):
    """A struct of the Produce response."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ProduceResponse(NamedTuple):
    """The Produce response."""

    responses: Sequence[TopicProduceResponse] = ()
    throttle_time_ms: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ProduceRequest": ProduceRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "BatchIndexAndErrorMessage": BatchIndexAndErrorMessage,
    "LeaderIdAndEpoch": LeaderIdAndEpoch,
    "PartitionProduceResponse": PartitionProduceResponse,
    "TopicProduceResponse": TopicProduceResponse,
    "NodeEndpoint": NodeEndpoint,
    "ProduceResponse": ProduceResponse,
}

REQUEST_FIELDS: Final = """
ProduceRequest 3-13 flexible 9+
 transactional_id string null = null
 acks int16
 timeout_ms int32
 topic_data []TopicProduceData
  name string -12
  topic_id uuid 13+
  partition_data []PartitionProduceData
   index int32
   records records null
"""
RESPONSE_FIELDS: Final = """
ProduceResponse 3-13 flexible 9+
 responses []TopicProduceResponse
  name string -12
  topic_id uuid 13+
  partition_responses []PartitionProduceResponse
   index int32
   error_code int16
   base_offset int64
   log_append_time_ms int64 = -1
   log_start_offset int64 5+ = -1
   record_errors []BatchIndexAndErrorMessage 8+
    batch_index int32 8+
    batch_index_error_message string 8+ null 8+ = null
   error_message string 8+ null 8+ = null
   current_leader LeaderIdAndEpoch 10+ tag 0
    leader_id int32 10+ = -1
    leader_epoch int32 10+ = -1
 throttle_time_ms int32 = 0
 node_endpoints []NodeEndpoint 10+ tag 0
  node_id int32 10+
  host string 10+
  port int32 10+
  rack string 10+ null 10+ = null
"""
