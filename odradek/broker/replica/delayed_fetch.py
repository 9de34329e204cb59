"""Reading for a Fetch: the read itself, and the wait for more data.

``FetchRead`` holds the partitions of one request and reads them. ``DelayedFetch`` retries the read whenever one of them changes,
until ``min_bytes`` are available or ``max_wait`` is over. A read only finds the slices of the log files: no byte of a record is
touched before it goes to the socket.

A partition is idle when its reader is at the end and knows its high watermark and log start offset. Within a session, reads skip
idle partitions until they change.

A consumer should read from an in-sync replica in its own rack (KIP-392). A leader that finds one answers with its broker id and
without records, and the consumer fetches there. Followers that are out of sync, or lack the consumer's offset, are skipped:
there the consumer would wait, or be sent back. Kafka's classes are RackAwareReplicaSelector and ReplicaManager.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.common.logging import log
from odradek.controller.metadata.cluster_view import NO_NODE, ClusterNode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.fetch import AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, PartitionData
from odradek.timing.timer import DelayedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from odradek.broker.replica.fetch_partitions import FetchPartition, FetchPartitions
    from odradek.broker.replica.fetch_sessions import Results
    from odradek.broker.replica.partition import Partition
    from odradek.storage.log.local_log import LogSlice
    from odradek.storage.log.log import Log


class ReplicaSelector:
    """Selects the replica for a consumer in ``rack``. ``nodes`` are the brokers it can reach, including this one."""

    __slots__ = ("_in_rack", "_node_id")

    def __init__(self, rack: str, nodes: Iterable[ClusterNode], node_id: int) -> None:
        self._in_rack = frozenset(node.node_id for node in nodes if node.rack == rack)
        self._node_id = node_id

    def select(self, partition: Partition, fetch_offset: int) -> int:
        """Return the broker to read from instead of this one; NO_NODE if this one is as near, or does not lead."""
        leader = partition.leader
        if leader is None or leader.followers is None or self._node_id in self._in_rack:
            return NO_NODE
        # Prefer the highest end offset, then the latest catch-up time.
        found = (
            (follower.log_end_offset, follower.last_caught_up_ms, node_id)
            for node_id, follower in leader.followers.readable_at(fetch_offset)
            if node_id in self._in_rack
        )
        return max(found, default=(0, 0.0, NO_NODE))[2]


# In a compiled module, names that are not Final are looked up at run time.
_PartitionData: Final = PartitionData
_AbortedTransaction: Final = AbortedTransaction
_EpochEndOffset: Final = EpochEndOffset
# Creates a named tuple without its constructor, in a third of the time. All fields must be given, in order.
_new: Final = tuple.__new__
# The first read of a partition opens its files, which takes up to a millisecond.
_STEP_PARTITIONS: Final = 8
_NOT_DIVERGING: Final = PartitionData().diverging_epoch
_SAME_LEADER: Final = PartitionData().current_leader
_NO_SNAPSHOT: Final = PartitionData().snapshot_id
_NO_PREFERENCE: Final = PartitionData().preferred_read_replica

_WRONG_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
# For these, aborted transactions are an empty list, as in Kafka; for every other error they are null.
_NO_SUCH_PARTITION: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class BegunRead:
    """The state of a read that is made in several steps."""

    __slots__ = ("_partitions", "is_over", "left_bytes", "must_answer", "results", "total_bytes")

    def __init__(self, partitions: Iterator[FetchPartition], max_bytes: int) -> None:
        self._partitions = partitions
        self.results: list[tuple[FetchPartition, PartitionData]] = []
        self.left_bytes = max_bytes
        self.total_bytes = 0
        self.must_answer = False
        self.is_over = False

    def next_partitions(self) -> list[FetchPartition]:
        """Return the partitions of the next step. Sets ``is_over`` if they are the last."""
        partitions = list(islice(self._partitions, _STEP_PARTITIONS))
        self.is_over = len(partitions) < _STEP_PARTITIONS
        return partitions


class FetchRead:
    """The partitions of one request, in reading order. ``find`` returns a name's ``Partition`` or its error.

    Unless ``is_whole``, only partitions that have changed since they were idle are read.
    """

    __slots__ = (
        "_any_replica",
        "_committed_only",
        "_find",
        "_found",
        "_is_whole",
        "_max_bytes",
        "_selector",
        "_told_by",
        "_wanted",
        "min_bytes",
        "throttle",
    )

    @property
    def size(self) -> int:
        """The number of partitions to read."""
        return len(self._wanted if self._is_whole else self._wanted.changed)

    def __init__(
        self,
        wanted: FetchPartitions,
        find: Callable[[FetchPartition], Partition | KafkaError],
        *,
        min_bytes: int,
        max_bytes: int,
        committed_only: bool,
        is_whole: bool = True,
        told_by: int | None = None,
        any_replica: bool = False,
        selector: ReplicaSelector | None = None,
        throttle: Callable[[Results], int] | None = None,
    ) -> None:
        """Set up the read. ``throttle`` returns how many ms the client must wait instead of getting the results; 0 sends them.

        ``told_by`` is this broker's id if a wrong-leader error should name the right leader (KIP-951), else None.

        If ``any_replica``, followers answer too. ``selector`` picks the follower a leader sends the reader to (KIP-392).
        """
        self.min_bytes = min_bytes
        self.throttle = throttle
        self._any_replica = any_replica
        self._selector = selector
        self._told_by = told_by
        self._wanted = wanted
        self._find = find
        self._max_bytes = max_bytes
        self._committed_only = committed_only
        self._is_whole = is_whole
        self._found: list[tuple[FetchPartition, PartitionData]] | None = None
        wanted.look(self._view)

    @property
    def _view(self) -> Hashable:
        """The settings, offsets aside, that decide whether a partition is idle."""
        return self._committed_only, self._any_replica, self._selector is not None

    def begin(self) -> BegunRead:
        """Begin a read that takes several calls of ``read``."""
        return BegunRead(iter(self._to_read), self._max_bytes)

    @property
    def _to_read(self) -> list[FetchPartition]:
        return self._wanted.to_read(is_whole=self._is_whole)

    def read(self, begun: BegunRead | None = None) -> tuple[list[tuple[FetchPartition, PartitionData]], bool]:
        """Return (results, whether to answer now: ``min_bytes`` are there, or a result must not wait).

        The limits are Kafka's: ``max_bytes`` for all partitions and ``partition_max_bytes`` for each. The first batch of the
        first partition with data is returned whole whatever its size, so that the reader makes progress (KIP-74). A ``begun``
        read continues with a few partitions, and returns all results so far.
        """
        results: list[tuple[FetchPartition, PartitionData]] = []
        left = self._max_bytes
        total = 0
        must_answer = False
        if begun is None:
            wanted = self._to_read
        else:
            results, left, total, must_answer = begun.results, begun.left_bytes, begun.total_bytes, begun.must_answer
            wanted = begun.next_partitions()
        for asked in wanted:
            try:
                partition = self._resolve(asked)
                data = self._read_partition(partition, asked, min(asked.max_bytes, left), total == 0)
            except KafkaError as error:
                data = _failed(asked, error, self._told_by)
                must_answer = True
            else:
                size = 0 if data.records is None else len(data.records)
                total += size
                left = max(left - size, 0)
                if data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0:
                    must_answer = True
                elif size == 0 and not self._is_whole and asked.is_told(data) and self._is_idle(partition, asked):
                    asked.note_idle()
            results.append((asked, data))
        if begun is not None:
            begun.left_bytes, begun.total_bytes, begun.must_answer = left, total, must_answer
            if not begun.is_over:
                return results, False
        return results, must_answer or total >= self.min_bytes or (total > 0 and self._is_behind())

    def _is_behind(self) -> bool:
        """Return whether a later segment has more. A read ends with its segment, so waiting would not help."""
        targets = ((asked.fetch_offset, asked.target.log) for asked in self._to_read if asked.target is not None)
        return any(log is not None and offset < log.segments.active.base_offset for offset, log in targets)

    def has_enough(self) -> bool:
        """Return whether there is enough to answer. If so, ``take_found`` returns the results."""
        # The usual min_bytes is 1. The offsets tell then, without a look into the log.
        if self.min_bytes <= 1 and not any(self._has_something(asked) for asked in self._wanted.to_read(is_whole=False)):
            return False
        found, is_enough = self.read()
        if is_enough:
            self._found = found
        return is_enough

    def take_found(self) -> list[tuple[FetchPartition, PartitionData]] | None:
        """Return the results ``has_enough`` has just found, so that they are not read again; None if it was not enough."""
        found, self._found = self._found, None
        return found

    def note_sent(self, partition: Partition, size_bytes: int) -> None:
        """Count bytes of ``partition`` that go into the response."""
        partition.fetched_bytes += size_bytes

    def _resolve(self, asked: FetchPartition) -> Partition:
        """Return the partition. The session's FetchPartition caches it until it is deleted."""
        partition: Partition | None = asked.target
        if partition is None or partition.is_deleted:
            asked.resolve(None)
            found = self._find(asked)
            if isinstance(found, KafkaError):
                raise found
            partition = found
            asked.resolve(found)
        return partition

    def _is_idle(self, partition: Partition, asked: FetchPartition) -> bool:  # noqa: ARG002  a follower's read uses it
        """Return whether a reader that knows the offsets has nothing to read.

        With a selector no partition is idle: another replica may become the nearest without a change here.
        """
        return self._selector is None and not self._has_something(asked)

    def _has_something(self, asked: FetchPartition) -> bool:
        partition: Partition | None = asked.target
        if partition is None or partition.log is None or (partition.leader is None and not self._any_replica):
            return True
        if asked.current_leader_epoch >= 0 and asked.current_leader_epoch != partition.leader_epoch:
            return True
        if self._committed_only:
            return not partition.last_stable_offset <= asked.fetch_offset <= partition.high_watermark
        return asked.fetch_offset != partition.high_watermark

    def _read_partition(self, partition: Partition, asked: FetchPartition, max_bytes: int, min_one: bool) -> PartitionData:
        log = partition.require_log() if self._any_replica else partition.require_leader_log()
        if asked.current_leader_epoch >= 0:
            partition.check_leader_epoch(asked.current_leader_epoch)
        if self._selector is not None:
            replica_id = self._selector.select(partition, asked.fetch_offset)
            if replica_id >= 0:
                return self._nothing(partition, log, asked)._replace(preferred_read_replica=replica_id)
        if asked.last_fetched_epoch >= 0:
            diverging = self._diverging(partition, log, asked)
            if diverging is not None:
                return diverging
        last_stable_offset = partition.last_stable_offset
        upper = last_stable_offset if self._committed_only else partition.high_watermark
        found = log.read(asked.fetch_offset, max_bytes, upper_offset=upper, min_one_batch=min_one)
        return _new(
            _PartitionData,
            (
                asked.partition,
                ErrorCode.NONE,
                partition.high_watermark,
                last_stable_offset,
                log.log_start_offset,
                _NOT_DIVERGING,
                _SAME_LEADER,
                _NO_SNAPSHOT,
                _aborted(log, asked.fetch_offset, found, upper) if self._committed_only else None,
                _NO_PREFERENCE,
                b"" if found is None else found,
            ),
        )

    def _diverging(self, partition: Partition, log: Log, asked: FetchPartition) -> PartitionData | None:
        """Return the epoch in which the two logs diverge; None if they agree. KafkaError: OFFSET_OUT_OF_RANGE."""
        epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"no known offset for epoch {asked.last_fetched_epoch}")
        if epoch >= asked.last_fetched_epoch and end_offset >= asked.fetch_offset:
            return None
        diverging = _EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return self._nothing(partition, log, asked)._replace(diverging_epoch=diverging)

    def _nothing(self, partition: Partition, log: Log, asked: FetchPartition) -> PartitionData:
        """Return the partition's offsets, without records."""
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )


def _aborted(log: Log, fetch_offset: int, found: LogSlice | None, upper_offset: int) -> list[AbortedTransaction]:
    """Return the aborted transactions that a reader of ``found`` must skip (KIP-98)."""
    if found is None:
        return []
    return [
        _AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
        for producer_id, first_offset in log.aborted_in(found, fetch_offset, upper_offset)
    ]


def _failed(asked: FetchPartition, error: KafkaError, told_by: int | None) -> PartitionData:
    partition: Partition | None = asked.target
    leader = _SAME_LEADER
    if told_by is not None and partition is not None and error.code in _WRONG_LEADER:
        leader_id = told_by if partition.leader is not None else partition.leader_id
        leader = LeaderIdAndEpoch(leader_id, partition.leader_epoch)
    return PartitionData(
        partition_index=asked.partition,
        error_code=error.code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        current_leader=leader,
        aborted_transactions=() if error.code in _NO_SUCH_PARTITION else None,
        records=b"",
    )


class DelayedFetch(DelayedOperation):
    """A Fetch that waits for bytes, watched under the ``key`` of its FetchPartitions."""

    __slots__ = ("_read", "_respond")

    def __init__(self, deadline_ms: float, read: FetchRead, respond: Callable[[], None]) -> None:
        super().__init__(deadline_ms)
        self._read = read
        self._respond = respond

    def try_complete(self) -> bool:
        """Complete the fetch if it has enough. A failure is answered to the fetch, never to the producer that appended."""
        try:
            if not self._read.has_enough():
                return False
        except Exception as error:  # noqa: BLE001  no error may reach the append
            log.error("cannot retry a delayed fetch", error)
        return self.force_complete()

    def on_complete(self) -> None:
        """See DelayedOperation."""
        self._respond()
