"""BeginQuorumEpoch up to version 1. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class RequestPartitionData(NamedTuple):
    """A struct of the BeginQuorumEpoch request."""

    partition_index: int = 0
    voter_directory_id: UUID | None = None
    leader_id: int = 0
    leader_epoch: int = 0


class RequestTopicData(NamedTuple):
    """A struct of the BeginQuorumEpoch request."""

    topic_name: str = ""
    partitions: Sequence[RequestPartitionData] = ()


class LeaderEndpoint(NamedTuple):
    """A struct of the BeginQuorumEpoch request."""

    name: str = ""
    host: str = ""
    port: int = 0


class BeginQuorumEpochRequest(NamedTuple):
    """The BeginQuorumEpoch request."""

    cluster_id: str | None = None
    voter_id: int = -1
    topics: Sequence[RequestTopicData] = ()
    leader_endpoints: Sequence[LeaderEndpoint] = ()


class PartitionData(NamedTuple):
    """A struct of the BeginQuorumEpoch response."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0


class TopicData(NamedTuple):
    """A struct of the BeginQuorumEpoch response."""

    topic_name: str = ""
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """A struct of the BeginQuorumEpoch response."""

    node_id: int = 0
    host: str = ""
    port: int = 0


class BeginQuorumEpochResponse(NamedTuple):
    """The BeginQuorumEpoch response."""

    error_code: int = 0
    topics: Sequence[TopicData] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": RequestPartitionData,
    "TopicData": RequestTopicData,
    "LeaderEndpoint": LeaderEndpoint,
    "BeginQuorumEpochRequest": BeginQuorumEpochRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "TopicData": TopicData,
    "NodeEndpoint": NodeEndpoint,
    "BeginQuorumEpochResponse": BeginQuorumEpochResponse,
}

REQUEST_FIELDS: Final = """
BeginQuorumEpochRequest 0-1 flexible 1+
 cluster_id string null = null
 voter_id int32 1+ = -1
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
   voter_directory_id uuid 1+
   leader_id int32
   leader_epoch int32
 leader_endpoints []LeaderEndpoint 1+
  name string 1+
  host string 1+
  port uint16 1+
"""
RESPONSE_FIELDS: Final = """
BeginQuorumEpochResponse 0-1 flexible 1+
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
