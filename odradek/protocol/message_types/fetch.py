"""Fetch up to version 18. Written by tools/generate_messages.py."""

from collections.abc import Sequence, Sized
from typing import Any, Final, NamedTuple
from uuid import UUID


class ReplicaState(NamedTuple):
    """Part of the Fetch request."""

    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(NamedTuple):
    """Part of the Fetch request."""

    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID | None = None
    high_watermark: int = 9223372036854775807


class FetchTopic(NamedTuple):
    """Part of the Fetch request."""

    topic_id: UUID | None = None
    partitions: Sequence[FetchPartition] = ()
    topic: str = ""


class ForgottenTopic(NamedTuple):
    """Part of the Fetch request."""

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
    """Part of the Fetch response."""

    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(NamedTuple):
    """Part of the Fetch response."""

    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(NamedTuple):
    """Part of the Fetch response."""

    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(NamedTuple):
    """Part of the Fetch response."""

    producer_id: int = 0
    first_offset: int = 0


class PartitionData(NamedTuple):
    """Part of the Fetch response."""

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
    """Part of the Fetch response."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()
    topic: str = ""


class NodeEndpoint(NamedTuple):
    """Part of the Fetch response."""

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
