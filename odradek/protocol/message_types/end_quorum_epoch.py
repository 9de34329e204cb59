"""EndQuorumEpoch up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class ReplicaInfo(NamedTuple):
    """A struct of the EndQuorumEpoch request."""

    candidate_id: int = 0
    candidate_directory_id: UUID | None = None


class RequestPartitionData(NamedTuple):
    """A struct of the EndQuorumEpoch request."""

    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    preferred_candidates: Sequence[ReplicaInfo] = ()


class RequestTopicData(NamedTuple):
    """A struct of the EndQuorumEpoch request."""

    topic_name: str = ""
    partitions: Sequence[RequestPartitionData] = ()


class LeaderEndpoint(NamedTuple):
    """A struct of the EndQuorumEpoch request."""

    name: str = ""
    host: str = ""
    port: int = 0


class EndQuorumEpochRequest(NamedTuple):
    """The EndQuorumEpoch request."""

    cluster_id: str | None = None
    topics: Sequence[RequestTopicData] = ()
    leader_endpoints: Sequence[LeaderEndpoint] = ()


class PartitionData(NamedTuple):
    """A struct of the EndQuorumEpoch response."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0


class TopicData(NamedTuple):
    """A struct of the EndQuorumEpoch response."""

    topic_name: str = ""
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """A struct of the EndQuorumEpoch response."""

    node_id: int = 0
    host: str = ""
    port: int = 0


class EndQuorumEpochResponse(NamedTuple):
    """The EndQuorumEpoch response."""

    error_code: int = 0
    topics: Sequence[TopicData] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ReplicaInfo": ReplicaInfo,
    "PartitionData": RequestPartitionData,
    "TopicData": RequestTopicData,
    "LeaderEndpoint": LeaderEndpoint,
    "EndQuorumEpochRequest": EndQuorumEpochRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "TopicData": TopicData,
    "NodeEndpoint": NodeEndpoint,
    "EndQuorumEpochResponse": EndQuorumEpochResponse,
}

REQUEST_FIELDS: Final = """
EndQuorumEpochRequest 0-1 flexible 1+
 cluster_id string null = null
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
   leader_id int32
   leader_epoch int32
   preferred_successors []int32 -0
   preferred_candidates []ReplicaInfo 1+
    candidate_id int32 1+
    candidate_directory_id uuid 1+
 leader_endpoints []LeaderEndpoint 1+
  name string 1+
  host string 1+
  port uint16 1+
"""
RESPONSE_FIELDS: Final = """
EndQuorumEpochResponse 0-1 flexible 1+
 error_code int16
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
   error_code int16
   leader_id int32
   leader_epoch int32
 node_endpoints []NodeEndpoint 1+ tag 0
  node_id int32 1+
  host string 1+
  port uint16 1+
"""
