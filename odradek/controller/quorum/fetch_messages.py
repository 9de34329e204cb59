"""An observer's requests to the quorum and the responses: Fetch and FetchSnapshot of `__cluster_metadata`."""

from collections.abc import Sequence, Sized
from typing import Final, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

from odradek.client.api import Api
from odradek.controller.metadata.snapshot_files import SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID
from odradek.controller.quorum.leader_discovery import Address, Election, QuorumAnswer
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import error_name
from odradek.protocol.message_types.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from odradek.protocol.message_types.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PartitionSnapshot,
    RequestPartitionSnapshot,
    RequestSnapshotId,
    RequestTopicSnapshot,
)
from odradek.protocol.record_batch import Buffer

# Below these versions, a response lacks the leader's address (KIP-853).
FETCH: Final[Api[FetchRequest, FetchResponse]] = Api(ApiKey.FETCH, 16)
FETCH_SNAPSHOT: Final[Api[FetchSnapshotRequest, FetchSnapshotResponse]] = Api(ApiKey.FETCH_SNAPSHOT, 1)
_UNKNOWN: Final = -1


class ObserverIdentity(NamedTuple):
    """A broker's identity in the quorum. ``directory_id`` is the id of the directory with the metadata log."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None


class LogPosition(NamedTuple):
    """The end of a copy of the log, and the high watermark known for it."""

    end_offset: int
    last_fetched_epoch: int
    high_watermark: int | None


class _Endpoint(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class _Leader(Protocol):
    @property
    def leader_id(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...


class Unanswerable(Exception):
    """A response without news of the quorum: an error of the whole request, or not the requested partition."""

    def __init__(self, error: int) -> None:
        super().__init__(error_name(error) if error else "no answer for the log")
        self.error = error


def fetch_request(who: ObserverIdentity, epoch: int, position: LogPosition, *, max_wait_ms: int, max_bytes: int) -> FetchRequest:
    """Return a request for the records after ``position``, from the leader of ``epoch``."""
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=position.end_offset,
        last_fetched_epoch=position.last_fetched_epoch,
        partition_max_bytes=max_bytes,
        replica_directory_id=who.directory_id,
        high_watermark=_UNKNOWN if position.high_watermark is None else position.high_watermark,
    )
    topic = FetchTopic(topic=CLUSTER_METADATA_TOPIC, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(
        cluster_id=who.cluster_id,
        replica_state=ReplicaState(replica_id=who.node_id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[topic],
    )


def fetch_snapshot_request(
    who: ObserverIdentity, epoch: int, snapshot: SnapshotId, position: int, *, max_bytes: int
) -> FetchSnapshotRequest:
    """Return a request for the bytes of ``snapshot`` from ``position`` on."""
    partition = RequestPartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=RequestSnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=who.directory_id,
    )
    topic = RequestTopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=[partition])
    return FetchSnapshotRequest(cluster_id=who.cluster_id, replica_id=who.node_id, max_bytes=max_bytes, topics=[topic])


T = TypeVar("T", PartitionData, PartitionSnapshot)


def fetched_partition(response: FetchResponse) -> tuple[PartitionData, QuorumAnswer]:
    """Return the metadata log's part of ``response``, and its answer about the quorum. Raises Unanswerable."""
    topics = [topic.partitions for topic in response.responses if topic.topic_id == CLUSTER_METADATA_TOPIC_ID]
    partition = _only(response.error_code, topics)
    if partition.partition_index != 0:
        raise Unanswerable(0)
    return partition, _answer(partition.error_code, partition.current_leader, response.node_endpoints)


def fetched_chunk(response: FetchSnapshotResponse) -> tuple[PartitionSnapshot, QuorumAnswer]:
    """Return the snapshot's part of ``response``, and its answer about the quorum. Raises Unanswerable."""
    topics = [topic.partitions for topic in response.topics if topic.name == CLUSTER_METADATA_TOPIC]
    partition = _only(response.error_code, topics)
    return partition, _answer(partition.error_code, partition.current_leader, response.node_endpoints)


def bytes_of(records: Sized | None) -> Buffer:
    """Return the records of a response as bytes."""
    return b"" if records is None else cast("Buffer", records)


def _only(error: int, topics: Sequence[Sequence[T]]) -> T:
    if error or len(topics) != 1 or len(topics[0]) != 1:
        raise Unanswerable(error)
    return topics[0][0]


def _answer(error: int, leader: _Leader, endpoints: Sequence[_Endpoint]) -> QuorumAnswer:
    addresses: dict[int, Address] = {each.node_id: (each.host, each.port) for each in endpoints}
    return QuorumAnswer(error, Election(leader.leader_epoch, leader.leader_id), addresses)
