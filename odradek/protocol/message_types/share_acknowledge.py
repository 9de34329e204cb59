"""ShareAcknowledge up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class AcknowledgementBatch(NamedTuple):
    """A struct of the ShareAcknowledge request."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: Sequence[int] = ()


class AcknowledgePartition(NamedTuple):
    """A struct of the ShareAcknowledge request."""

    partition_index: int = 0
    acknowledgement_batches: Sequence[AcknowledgementBatch] = ()


class AcknowledgeTopic(NamedTuple):
    """A struct of the ShareAcknowledge request."""

    topic_id: UUID | None = None
    partitions: Sequence[AcknowledgePartition] = ()


class ShareAcknowledgeRequest(NamedTuple):
    """The ShareAcknowledge request."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: Sequence[AcknowledgeTopic] = ()


class LeaderIdAndEpoch(NamedTuple):
    """A struct of the ShareAcknowledge response."""

    leader_id: int = 0
    leader_epoch: int = 0


class PartitionData(NamedTuple):
    """A struct of the ShareAcknowledge response."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class ShareAcknowledgeTopicResponse(NamedTuple):
    """A struct of the ShareAcknowledge response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """A struct of the ShareAcknowledge response."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ShareAcknowledgeResponse(NamedTuple):
    """The ShareAcknowledge response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: Sequence[ShareAcknowledgeTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AcknowledgementBatch": AcknowledgementBatch,
    "AcknowledgePartition": AcknowledgePartition,
    "AcknowledgeTopic": AcknowledgeTopic,
    "ShareAcknowledgeRequest": ShareAcknowledgeRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "LeaderIdAndEpoch": LeaderIdAndEpoch,
    "PartitionData": PartitionData,
    "ShareAcknowledgeTopicResponse": ShareAcknowledgeTopicResponse,
    "NodeEndpoint": NodeEndpoint,
    "ShareAcknowledgeResponse": ShareAcknowledgeResponse,
}

REQUEST_FIELDS: Final = """
ShareAcknowledgeRequest 1-2 flexible 0+
 group_id string null = null
 member_id string null
 share_session_epoch int32
 is_renew_ack bool 2+ = false
 topics []AcknowledgeTopic
  topic_id uuid
  partitions []AcknowledgePartition
   partition_index int32
   acknowledgement_batches []AcknowledgementBatch
    first_offset int64
    last_offset int64
    acknowledge_types []int8
"""
RESPONSE_FIELDS: Final = """
ShareAcknowledgeResponse 1-2 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 acquisition_lock_timeout_ms int32 2+
 responses []ShareAcknowledgeTopicResponse
  topic_id uuid
  partitions []PartitionData
   partition_index int32
   error_code int16
   error_message string null = null
   current_leader LeaderIdAndEpoch
    leader_id int32
    leader_epoch int32
 node_endpoints []NodeEndpoint
  node_id int32
  host string
  port int32
  rack string null = null
"""
