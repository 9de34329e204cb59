"""Fetch up to version 18. Written by tools/generate_messages.py."""

from collections.abc import Sequence, Sized
from typing import Any, Final, NamedTuple
from uuid import UUID


class ReplicaState(NamedTuple):
    """A struct of the Fetch request."""

    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(NamedTuple):
    """A struct of the Fetch request."""

    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID | None = None
    high_watermark: int = 9223372036854775807


class FetchTopic(NamedTuple):
    """A struct of the Fetch request."""

    topic_id: UUID | None = None
    partitions: Sequence[FetchPartition] = ()
    topic: str = ""


class ForgottenTopic(NamedTuple):
    """A struct of the Fetch request."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()
    topic: str = ""


class FetchRequest(NamedTuple):
    """The Fetch request."""

    cluster_id: str | None = None
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()
    rack_id: str = ""
    replica_id: int = -1


class EpochEndOffset(NamedTuple):
    """A struct of the Fetch response."""

    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(NamedTuple):
    """A struct of the Fetch response."""

    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(NamedTuple):
    """A struct of the Fetch response."""

    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(NamedTuple):
    """A struct of the Fetch response."""

    producer_id: int = 0
    first_offset: int = 0


class PartitionData(NamedTuple):
    """A struct of the Fetch response."""

    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = EpochEndOffset()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: Sequence[AbortedTransaction] | None = ()
    preferred_read_replica: int = -1
    records: Sized | None = None


class FetchableTopicResponse(NamedTuple):
    """A struct of the Fetch response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()
    topic: str = ""


class NodeEndpoint(NamedTuple):
    """A struct of the Fetch response."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class FetchResponse(NamedTuple):
    """The Fetch response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "ReplicaState": ReplicaState,
    "FetchPartition": FetchPartition,
    "FetchTopic": FetchTopic,
    "ForgottenTopic": ForgottenTopic,
    "FetchRequest": FetchRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "EpochEndOffset": EpochEndOffset,
    "LeaderIdAndEpoch": LeaderIdAndEpoch,
    "SnapshotId": SnapshotId,
    "AbortedTransaction": AbortedTransaction,
    "PartitionData": PartitionData,
    "FetchableTopicResponse": FetchableTopicResponse,
    "NodeEndpoint": NodeEndpoint,
    "FetchResponse": FetchResponse,
}

REQUEST_FIELDS: Final = """
FetchRequest 4-18 flexible 12+
 cluster_id string 12+ null 12+ tag 0 = null
 replica_id int32 -14 = -1
 replica_state ReplicaState 15+ tag 1
  replica_id int32 15+ = -1
  replica_epoch int64 15+ = -1
 max_wait_ms int32
 min_bytes int32
 max_bytes int32 = 2147483647
 isolation_level int8 = 0
 session_id int32 7+ = 0
 session_epoch int32 7+ = -1
 topics []FetchTopic
  topic string -12
  topic_id uuid 13+
  partitions []FetchPartition
   partition int32
   current_leader_epoch int32 9+ = -1
   fetch_offset int64
   last_fetched_epoch int32 12+ = -1
   log_start_offset int64 5+ = -1
   partition_max_bytes int32
   replica_directory_id uuid 17+ tag 0
   high_watermark int64 18+ tag 1 = 9223372036854775807
 forgotten_topics_data []ForgottenTopic 7+
  topic string 7-12
  topic_id uuid 13+
  partitions []int32 7+
 rack_id string 11+ = ""
"""
RESPONSE_FIELDS: Final = """
FetchResponse 4-18 flexible 12+
 throttle_time_ms int32
 error_code int16 7+
 session_id int32 7+ = 0
 responses []FetchableTopicResponse
  topic string -12
  topic_id uuid 13+
  partitions []PartitionData
   partition_index int32
   error_code int16
   high_watermark int64
   last_stable_offset int64 = -1
   log_start_offset int64 5+ = -1
   diverging_epoch EpochEndOffset 12+ tag 0
    epoch int32 12+ = -1
    end_offset int64 12+ = -1
   current_leader LeaderIdAndEpoch 12+ tag 1
    leader_id int32 12+ = -1
    leader_epoch int32 12+ = -1
   snapshot_id SnapshotId 12+ tag 2
    end_offset int64 12+ = -1
    epoch int32 12+ = -1
   aborted_transactions []AbortedTransaction null
    producer_id int64
    first_offset int64
   preferred_read_replica int32 11+ = -1
   records records null
 node_endpoints []NodeEndpoint 16+ tag 0
  node_id int32 16+
  host string 16+
  port int32 16+
  rack string 16+ null 16+ = null
"""
