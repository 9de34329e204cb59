"""Vote up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class RequestPartitionData(NamedTuple):
    """A struct of the Vote request."""

    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: UUID | None = None
    voter_directory_id: UUID | None = None
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False


class RequestTopicData(NamedTuple):
    """A struct of the Vote request."""

    topic_name: str = ""
    partitions: Sequence[RequestPartitionData] = ()


class VoteRequest(NamedTuple):
    """The Vote request."""

    cluster_id: str | None = None
    voter_id: int = -1
    topics: Sequence[RequestTopicData] = ()


class PartitionData(NamedTuple):
    """A struct of the Vote response."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    vote_granted: bool = False


class TopicData(NamedTuple):
    """A struct of the Vote response."""

    topic_name: str = ""
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """A struct of the Vote response."""

    node_id: int = 0
    host: str = ""
    port: int = 0


class VoteResponse(NamedTuple):
    """The Vote response."""

    error_code: int = 0
    topics: Sequence[TopicData] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": RequestPartitionData,
    "TopicData": RequestTopicData,
    "VoteRequest": VoteRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "PartitionData": PartitionData,
    "TopicData": TopicData,
    "NodeEndpoint": NodeEndpoint,
    "VoteResponse": VoteResponse,
}

REQUEST_FIELDS: Final = """
VoteRequest 0-2 flexible 0+
 cluster_id string null = null
 voter_id int32 1+ = -1
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
   replica_epoch int32
   replica_id int32
   replica_directory_id uuid 1+
   voter_directory_id uuid 1+
   last_offset_epoch int32
   last_offset int64
   pre_vote bool 2+
"""
RESPONSE_FIELDS: Final = """
VoteResponse 0-2 flexible 0+
 error_code int16
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
   error_code int16
   leader_id int32
   leader_epoch int32
   vote_granted bool
 node_endpoints []NodeEndpoint 1+ tag 0
  node_id int32 1+
  host string 1+
  port uint16 1+
"""
