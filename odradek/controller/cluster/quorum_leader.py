"""The leader of a quorum with one voter, as observers see it: it answers their fetches of the metadata log.

A Fetch is answered with batches, with the point where the two logs diverge, or with the id of a snapshot to begin at. The bytes
of snapshots are in ``api.controller.fetch_snapshot``.

A request of another epoch is refused with the leader and its epoch. So observers learn of restarts. A Fetch without news waits
for the next commit, or until its time is over. Kafka's class is KafkaRaftClient (KIP-595, KIP-630, KIP-853).

Each start begins an epoch with a control batch that names the leader. A follower with a different log gets the point of
divergence. A follower that lacks records which only snapshots contain must fetch a snapshot (KIP-630).

DescribeQuorum shows the progress of the observers (KIP-836; Kafka's class is LeaderState).

Left out: all messages between voters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.metadata_log import MetadataLog
from odradek.controller.metadata.snapshot_files import SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.protocol.message_types.fetch import SnapshotId as FetchedSnapshotId
from odradek.protocol.quorum_records import Voter, epoch_start_batch
from odradek.protocol.record_batch import iter_batches
from odradek.timing.clock import Clock
from odradek.timing.reply import Reply
from odradek.timing.timer import DelayedOperation, Purgatory, Timer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.common.config.listener_config import Endpoint

_NOTHING: Final = (0, 0)


class EpochEnd(NamedTuple):
    """The largest epoch not above a requested one, and its end offset."""

    epoch: int
    end_offset: int


class QuorumLog(MetadataLog):
    """The log of the only voter: synced records are committed. Loop thread only."""

    def begin_epoch(self, voter: Voter, *, seen_epoch: int, is_dynamic: bool, now_ms: int) -> None:
        """Begin an epoch above all earlier ones and ``seen_epoch``. If ``is_dynamic``, the log names the voter.

        KafkaError: KAFKA_STORAGE_ERROR.
        """
        self.voter = voter
        newest = self.snapshots.ids[-1].epoch if self.snapshots.ids else 0
        epoch = max(self._log.leader_epochs.latest, newest, seen_epoch, 0) + 1
        batch = epoch_start_batch(self.end_offset, now_ms, epoch, voter, is_dynamic=is_dynamic)
        # Like every append to this log, this one is synced.
        self._log.append_as_follower(batch, leader_epoch=epoch, now_ms=now_ms)
        self.last_append_ms = now_ms

    @property
    def high_watermark(self) -> int:
        """Return the offset below which records are committed."""
        return self.synced_offset

    def check(self, offset: int, epoch: int) -> EpochEnd | SnapshotId | None:
        """Check a follower whose log ends at ``offset``, after a record of ``epoch``. None: it may fetch there.

        Otherwise its log diverges from this one after the end of an epoch, or it must begin anew at a snapshot.
        """
        newest = self.newest_snapshot
        if newest is not None and self._lacks_a_snapshot(offset, epoch):
            return newest
        if (offset, epoch) == _NOTHING:
            return None
        known_epoch, end_offset = self._log.end_offset_for_epoch(epoch)
        if known_epoch < 0:
            known_epoch, end_offset = self.leader_epoch, self.end_offset
        return None if known_epoch == epoch and offset <= end_offset else EpochEnd(known_epoch, end_offset)

    def _lacks_a_snapshot(self, offset: int, epoch: int) -> bool:
        """Return whether the follower needs a snapshot. An empty one gets a snapshot too, as it is shorter."""
        start_offset, oldest = self.start_offset, self.snapshots.ids[0]
        if offset == 0 or offset < start_offset:
            return True
        if start_offset == 0:
            return False
        return epoch < oldest.epoch or (offset == start_offset and epoch != oldest.epoch)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole committed batches from ``offset`` on, at least one if there is any. KafkaError, OSError."""
        found = self._log.read(offset, max_bytes, upper_offset=self.high_watermark, min_one_batch=True)
        if found is None:
            return b""
        data = found.read()
        end = 0
        for position, header in iter_batches(data):
            end = position + header.size_bytes
        return data[:end]


class DelayedMetadataFetch(DelayedOperation):
    """A fetch that calls ``answer`` as soon as there is news (``has_news``), or when its time is over."""

    __slots__ = ("_answer", "_has_news")

    def __init__(self, deadline_ms: float, has_news: Callable[[], bool], answer: Callable[[], object]) -> None:
        super().__init__(deadline_ms)
        self._has_news = has_news
        self._answer = answer

    def try_complete(self) -> bool:
        """See DelayedOperation."""
        return self._has_news() and self.force_complete()

    def on_complete(self) -> None:
        """See DelayedOperation."""
        self._answer()


# An observer that has not fetched for this long is forgotten, as in Kafka.
_SESSION_MS: Final = 300_000

ObserverKey = tuple[int, UUID | None]


@dataclass(slots=True)
class Observer:
    """The end of an observer's log, the time of its last fetch, and when it was last caught up; -1 for never."""

    log_end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    # The leader's log end offset at the last fetch. A fetch from that offset shows that the observer was caught up then.
    leader_end_offset: int = -1


class Observers:
    """The observers of a quorum, by node id and directory id. Times are wall time."""

    def __init__(self) -> None:
        self._known: dict[ObserverKey, Observer] = {}

    def fetched(self, key: ObserverKey, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Note that an observer, which has everything below ``offset``, fetches more."""
        observer = self._known.setdefault(key, Observer())
        if offset >= leader_end_offset:
            observer.last_caught_up_ms = max(observer.last_caught_up_ms, now_ms)
        elif 0 < observer.leader_end_offset <= offset:
            observer.last_caught_up_ms = max(observer.last_caught_up_ms, observer.last_fetch_ms)
        observer.leader_end_offset = leader_end_offset
        observer.last_fetch_ms = max(observer.last_fetch_ms, now_ms)
        observer.log_end_offset = offset

    def known(self, now_ms: int) -> Iterator[tuple[ObserverKey, Observer]]:
        """Iterate over the observers that have fetched recently."""
        silent = [key for key, observer in self._known.items() if now_ms - observer.last_fetch_ms >= _SESSION_MS]
        for key in silent:
            del self._known[key]
        yield from sorted(self._known.items(), key=lambda each: each[0][0])


MOST_BYTES: Final = 8 * 1024 * 1024
# The key under which all fetches wait, as there is only one partition.
_KEY: Final = (CLUSTER_METADATA_TOPIC, 0)


class QuorumLeader:
    """The leader of the quorum. ``endpoints`` has the controller's advertised listeners by name. Loop thread only."""

    def __init__(
        self,
        log: QuorumLog,
        *,
        node_id: int,
        cluster_id: str,
        directory_id: UUID,
        endpoints: "Mapping[str, Endpoint]",
        clock: Clock,
        timer: Timer,
    ) -> None:
        self.log = log
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.directory_id = directory_id
        self.endpoints = endpoints
        self.observers = Observers()
        self.purgatory: Purgatory[DelayedMetadataFetch] = Purgatory("Fetch", timer)
        self._clock = clock
        self._is_closed = False

    @property
    def epoch(self) -> int:
        """Return the epoch that began with this process."""
        return self.log.leader_epoch

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Answer the fetches that wait for records."""
        self.purgatory.check_and_complete(_KEY)

    def close(self) -> None:
        """Answer the waiting fetches; there is no leader any more."""
        self._is_closed = True
        for operation in self.purgatory.cancel_for_key(_KEY):
            operation.force_complete()

    # ------------------------------------------------------------------------------------------------------------- Fetch

    def fetch(self, request: FetchRequest, listener_name: str) -> FetchResponse | Reply[FetchResponse]:
        """Answer a Fetch of the metadata log."""
        partition = _only_partition(request)
        if request.cluster_id not in (None, self.cluster_id):
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if partition is None:
            return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
        numbers = (request.max_wait_ms, partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch)
        if min(numbers) < 0:
            return self._fetched(PartitionData(error_code=ErrorCode.INVALID_REQUEST), listener_name)
        found = self._look(request, partition)
        if request.max_wait_ms == 0 or not self._is_nothing(found, partition):
            return self._fetched(found, listener_name)
        reply: Reply[FetchResponse] = Reply()
        delayed = DelayedMetadataFetch(
            self._clock.monotonic_ms() + request.max_wait_ms,
            has_news=lambda: self._has_news(partition),
            answer=lambda: reply.complete(_response(self._look(request, partition))),
        )
        self.purgatory.try_complete_else_watch(delayed, (_KEY,))
        return reply.then(lambda response: self._told(response, listener_name))

    def _has_news(self, partition: FetchPartition) -> bool:
        """Return whether a waiting fetch must be answered."""
        return self._is_closed or self.log.high_watermark > partition.fetch_offset

    def _look(self, request: FetchRequest, partition: FetchPartition) -> PartitionData:
        error = self.refusal(partition.current_leader_epoch)
        if error:
            return self._about()._replace(error_code=error)
        log = self.log
        found = log.check(partition.fetch_offset, partition.last_fetched_epoch)
        if isinstance(found, EpochEnd):
            return self._about()._replace(diverging_epoch=EpochEndOffset(*found))
        if isinstance(found, SnapshotId):
            return self._about()._replace(snapshot_id=FetchedSnapshotId(*found))
        self._note(request, partition)
        try:
            records = log.read(partition.fetch_offset, min(request.max_bytes, MOST_BYTES))
        except (KafkaError, OSError):
            # The disk's error has been logged already.
            return self._about()._replace(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._about()._replace(records=records)

    def _note(self, request: FetchRequest, partition: FetchPartition) -> None:
        replica_id = request.replica_state.replica_id
        if replica_id >= 0 and replica_id != self.node_id:
            key = (replica_id, partition.replica_directory_id)
            self.observers.fetched(key, partition.fetch_offset, self.log.end_offset, self._clock.now_ms())

    def _is_nothing(self, found: PartitionData, asked: FetchPartition) -> bool:
        """Return whether an answer has no news, so that it is better to wait."""
        knows_high_watermark = asked.high_watermark >= found.high_watermark
        says_something = found.error_code or found.diverging_epoch.epoch >= 0 or found.snapshot_id.end_offset >= 0
        return not (says_something or found.records) and knows_high_watermark

    def _about(self) -> PartitionData:
        """Return the fields common to all answers."""
        return PartitionData(
            high_watermark=self.log.high_watermark,
            log_start_offset=self.log.start_offset,
            current_leader=LeaderIdAndEpoch(self.node_id, self.epoch),
        )

    def _fetched(self, partition: PartitionData, listener_name: str) -> FetchResponse:
        return self._told(_response(partition), listener_name)

    def _told(self, response: FetchResponse, listener_name: str) -> FetchResponse:
        endpoint = self.endpoints.get(listener_name)
        if endpoint is None:
            return response
        return response._replace(node_endpoints=[NodeEndpoint(self.node_id, endpoint.host, endpoint.port)])

    def refusal(self, epoch: int) -> int:
        """Return the error for a request of ``epoch``; NONE for this leader's epoch."""
        if self._is_closed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > self.epoch else ErrorCode.NONE


def _only_partition(request: FetchRequest) -> FetchPartition | None:
    """Return the request's metadata partition; None if it names another partition, or several."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    [topic] = request.topics
    [partition] = topic.partitions
    is_metadata = topic.topic_id == CLUSTER_METADATA_TOPIC_ID or topic.topic == CLUSTER_METADATA_TOPIC
    return partition if is_metadata and partition.partition == 0 else None


def _response(partition: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic=CLUSTER_METADATA_TOPIC, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition])
    return FetchResponse(responses=[topic])
