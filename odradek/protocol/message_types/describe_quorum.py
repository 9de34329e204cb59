"""DescribeQuorum up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID


class RequestPartitionData(NamedTuple):
    """A struct of the DescribeQuorum request."""

    partition_index: int = 0


class RequestTopicData(NamedTuple):
    """A struct of the DescribeQuorum request."""

    topic_name: str = ""
    partitions: Sequence[RequestPartitionData] = ()


class DescribeQuorumRequest(NamedTuple):
    """The DescribeQuorum request."""

    topics: Sequence[RequestTopicData] = ()


class ReplicaState(NamedTuple):
    """A struct of the DescribeQuorum response."""

    replica_id: int = 0
    replica_directory_id: UUID | None = None
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class PartitionData(NamedTuple):
    """A struct of the DescribeQuorum response."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: Sequence[ReplicaState] = ()
    observers: Sequence[ReplicaState] = ()


class TopicData(NamedTuple):
    """A struct of the DescribeQuorum response."""

    topic_name: str = ""
    partitions: Sequence[PartitionData] = ()


class Listener(NamedTuple):
    """A struct of the DescribeQuorum response."""

    name: str = ""
    host: str = ""
    port: int = 0


class Node(NamedTuple):
    """A struct of the DescribeQuorum response."""

    node_id: int = 0
    listeners: Sequence[Listener] = ()


class DescribeQuorumResponse(NamedTuple):
    """The DescribeQuorum response."""

    error_code: int = 0
    error_message: str | None = None
    topics: Sequence[TopicData] = ()
    nodes: Sequence[Node] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "PartitionData": RequestPartitionData,
    "TopicData": RequestTopicData,
    "DescribeQuorumRequest": DescribeQuorumRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ReplicaState": ReplicaState,
    "PartitionData": PartitionData,
    "TopicData": TopicData,
    "Listener": Listener,
    "Node": Node,
    "DescribeQuorumResponse": DescribeQuorumResponse,
}

REQUEST_FIELDS: Final = """
DescribeQuorumRequest 0-2 flexible 0+
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
"""
RESPONSE_FIELDS: Final = """
DescribeQuorumResponse 0-2 flexible 0+
 error_code int16
 error_message string 2+ null 2+
 topics []TopicData
  topic_name string
  partitions []PartitionData
   partition_index int32
   error_code int16
   error_message string 2+ null 2+
   leader_id int32
   leader_epoch int32
   high_watermark int64
   current_voters []ReplicaState
    replica_id int32
    replica_directory_id uuid 2+
    log_end_offset int64
    last_fetch_timestamp int64 1+ = -1
    last_caught_up_timestamp int64 1+ = -1
   observers []ReplicaState
    replica_id int32
    replica_directory_id uuid 2+
    log_end_offset int64
    last_fetch_timestamp int64 1+ = -1
    last_caught_up_timestamp int64 1+ = -1
 nodes []Node 2+
  node_id int32 2+
  listeners []Listener 2+
   name string 2+
   host string 2+
   port uint16 2+
"""
