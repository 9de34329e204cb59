"""The share partitions of one partition of ``__share_group_state``: hosted by the runtime, called by handlers and the persister.

    initialize   a new state, under a state epoch that is not below the last one
    read         the state, for a new leader of the partition: its leader epoch fences all earlier leaders
    write        the leader's change, as an update record; as a snapshot after enough updates
    delete       a tombstone
    summary      the state without its batches; also of a share partition that has none

A share partition that was not initialized can be neither read nor written. A refusal is an operation's response, as in Kafka, and
not an exception: the runtime translates exceptions. Records of a topic that has been deleted are deleted, too.

Two deadlines keep the log short. Every cold interval, share partitions without a recent snapshot get one; every prune interval,
records below the oldest snapshot that is still needed are removed from the log (``prune``).

Source: ``ShareCoordinatorShard`` and ``ShareCoordinatorOffsetsManager`` of Apache Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from odradek.coordinator.runtime.ports import WriteOrder
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue
from odradek.coordinator.share.batches import NO_EPOCH, combine_batches, combined, updated
from odradek.coordinator.share.state import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    PartitionState,
    SharePartitionKey,
    StateBatch,
    StateSummary,
)
from odradek.protocol.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    UnknownKey,
    decode_share_state_key,
    decode_value,
)
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from uuid import UUID

    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.timing.reply import Reply

_COLD: Final = "cold snapshots"
_PRUNE: Final = "prune"
# The number of cold snapshots without a pause, some milliseconds of work, and the pause.
_TOGETHER: Final = 100
_PAUSE_MS: Final = 10
_NO_OFFSET: Final = -1
# Kafka's texts, which its brokers log.
_READ_UNINITIALIZED: Final = "Read operation on uninitialized share partition not allowed."
_WRITE_UNINITIALIZED: Final = "Write operation on uninitialized share partition not allowed."
_FENCED_LEADER_EPOCH: Final = "The leader epoch in the request is older than the epoch on the broker."
_FENCED_STATE_EPOCH: Final = "The coordinator rejected the request because the state epoch did not match."
_UNKNOWN_PARTITION: Final = "This server does not host this topic-partition."


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """``share.coordinator.*``: updates per snapshot, and the two intervals."""

    snapshot_update_records_per_snapshot: int = 500
    cold_partition_snapshot_interval_ms: int = 300_000
    state_topic_prune_interval_ms: int = 300_000


class Topics(Protocol):
    """The topics of the cluster."""

    def partition_count(self, topic_id: UUID) -> int:
        """Return the number of the topic's partitions, 0 if there is no such topic."""


class StoredShareState(NamedTuple):
    """A share partition as replayed. ``snapshot`` has the updates merged into it.

    ``leader_epoch`` and ``state_epoch`` are the highest seen; they fence. ``updates`` counts the update records since the last
    snapshot that a write caused. ``snapshot_offset`` is the place of the last snapshot record.
    """

    snapshot: ShareSnapshotValue
    leader_epoch: int
    state_epoch: int
    updates: int
    snapshot_offset: int


class ShareShard:
    """The shard of share partitions; see ``coordinator.runtime.ports.CoordinatorShard``. Loop thread only."""

    __slots__ = ("_config", "_context", "_last_snapshot_offset", "_prune", "_topics", "partitions", "pruned_offset", "writes")

    write_order: ClassVar[WriteOrder] = WriteOrder.REPLAY_THEN_APPEND

    def __init__(
        self,
        context: ShardContext,
        config: ShareCoordinatorConfig,
        topics: Topics,
        prune: Callable[[int, int], None],
    ) -> None:
        """``prune`` removes the records of a partition below an offset."""
        self._context = context
        self._config = config
        self._topics = topics
        self._prune = prune
        # For metrics, since the load: the offset below which the log was pruned, and the writes, also refused ones.
        self.pruned_offset = 0
        self.writes = 0
        self.partitions: TimelineDict[SharePartitionKey, StoredShareState] = TimelineDict(context.snapshots)
        # The offset of the last snapshot or tombstone.
        self._last_snapshot_offset: TimelineValue[int] = TimelineValue(context.snapshots, _NO_OFFSET)

    # -------------------------------------------------------------------------------------------------------------- replay

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """Apply one record."""
        key, value = record
        if isinstance(key, ShareSnapshotKey):
            self._last_snapshot_offset.set(offset)
            place = SharePartitionKey(*key)
            if isinstance(value, ShareSnapshotValue):
                self.partitions[place] = self._with_snapshot(self.partitions.get(place), combined(value), offset)
            else:
                self.partitions.pop(place)
        elif isinstance(key, ShareUpdateKey) and isinstance(value, ShareUpdateValue):
            place = SharePartitionKey(*key)
            self.partitions[place] = _with_update(self.partitions.get(place), value)

    def _with_snapshot(self, known: StoredShareState | None, snapshot: ShareSnapshotValue, offset: int) -> StoredShareState:
        if known is None:
            return StoredShareState(snapshot, snapshot.leader_epoch, snapshot.state_epoch, 0, offset)
        return StoredShareState(
            snapshot,
            max(known.leader_epoch, snapshot.leader_epoch),
            max(known.state_epoch, snapshot.state_epoch),
            0 if known.updates >= self._config.snapshot_update_records_per_snapshot else known.updates,
            offset,
        )

    def on_loaded(self, now_ms: int) -> None:  # noqa: ARG002  deadlines are measured on the monotonic clock
        """Set the deadlines of cold snapshots and pruning."""
        self._watch_cold()
        self._watch_prune()

    def on_unloaded(self) -> Iterable[tuple[Reply[Any], object]]:
        """Return no replies, as this shard holds none."""
        return ()

    # ---------------------------------------------------------------------------------------------------------- operations

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> CoordinatorResult[KafkaError | None]:
        """Begin a new state at ``start_offset``; -1 leaves the choice to the partition's leader."""
        error = self._refusal(key, state_epoch=state_epoch)
        if error is not None:
            return CoordinatorResult((), error)
        known = self.partitions.get(key)
        now_ms = self._context.clock.now_ms()
        is_open = start_offset == UNINITIALIZED_START_OFFSET
        snapshot = ShareSnapshotValue(
            snapshot_epoch=0 if known is None else known.snapshot.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT if is_open else 0,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
            state_batches=(),
        )
        return CoordinatorResult((CoordinatorRecord(ShareSnapshotKey(*key), snapshot),), None)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> CoordinatorResult[PartitionState | KafkaError]:
        """Return the state to the leader of ``leader_epoch``. A new leader epoch is written, and fences the earlier ones."""
        error = self._refusal(key, leader_epoch, uninitialized=_READ_UNINITIALIZED)
        if error is not None:
            return CoordinatorResult((), error)
        known = self.partitions[key]
        stored = known.snapshot
        state = PartitionState.counted(stored.state_epoch, leader_epoch, stored.start_offset, stored.state_batches)
        if known.leader_epoch == leader_epoch:
            return CoordinatorResult((), state)
        self.writes += 1
        record = self._changed(key, known, leader_epoch, stored.start_offset, stored.delivery_complete_count, ())
        return CoordinatorResult((record,), state)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> CoordinatorResult[KafkaError | None]:
        """Merge the leader's change into the state. The start offset never moves back."""
        self.writes += 1
        error = self._refusal(key, leader_epoch, state_epoch, uninitialized=_WRITE_UNINITIALIZED)
        if error is not None:
            return CoordinatorResult((), error)
        known = self.partitions[key]
        record = self._changed(key, known, known.snapshot.leader_epoch, start_offset, delivery_complete_count, batches)
        return CoordinatorResult((record,), None)

    def delete(self, key: SharePartitionKey) -> CoordinatorResult[KafkaError | None]:
        """Delete the state, if there is one."""
        error = self._refusal(key)
        if error is not None:
            return CoordinatorResult((), error)
        return CoordinatorResult((_tombstone(key),) if key in self.partitions else (), None)

    def read_summary(self, key: SharePartitionKey) -> CoordinatorResult[StateSummary | KafkaError]:
        """Return the state without its batches; that of a share partition without state is uninitialized."""
        error = self._refusal(key)
        if error is not None:
            return CoordinatorResult((), error)
        known = self.partitions.get(key)
        if known is None:
            summary = StateSummary(0, 0, UNINITIALIZED_START_OFFSET, UNINITIALIZED_DELIVERY_COMPLETE_COUNT)
        else:
            stored = known.snapshot
            summary = StateSummary(stored.state_epoch, stored.leader_epoch, stored.start_offset, stored.delivery_complete_count)
        return CoordinatorResult((), summary)

    def delete_topics(self, topic_ids: Collection[UUID]) -> CoordinatorResult[None]:
        """Delete the state of all share partitions of deleted topics."""
        keys = [key for key in self.partitions if key.topic_id in topic_ids]
        return CoordinatorResult([_tombstone(key) for key in keys], None, atomic=False)

    def _refusal(
        self,
        key: SharePartitionKey,
        leader_epoch: int | None = None,
        state_epoch: int | None = None,
        uninitialized: str | None = None,
    ) -> KafkaError | None:
        """Return the first error of an operation, in Kafka's order. ``uninitialized`` refuses it without a state."""
        if key.partition < 0:
            return _invalid("The partition id cannot be a negative number.")
        if leader_epoch is not None and leader_epoch < 0:
            return _invalid("The leader epoch cannot be a negative number.")
        if state_epoch is not None and state_epoch < 0:
            return _invalid("The state epoch cannot be a negative number.")
        known = self.partitions.get(key)
        if known is None:
            if uninitialized is not None:
                return _invalid(uninitialized)
        elif leader_epoch is not None and known.leader_epoch > leader_epoch:
            return KafkaError(ErrorCode.FENCED_LEADER_EPOCH, _FENCED_LEADER_EPOCH)
        elif state_epoch is not None and known.state_epoch > state_epoch:
            return KafkaError(ErrorCode.FENCED_STATE_EPOCH, _FENCED_STATE_EPOCH)
        if key.partition >= self._topics.partition_count(key.topic_id):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_PARTITION)
        return None

    def _changed(
        self,
        key: SharePartitionKey,
        known: StoredShareState,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> CoordinatorRecord:
        """Return the update; a snapshot if there were as many updates as ``snapshot.update.records.per.snapshot``."""
        stored = known.snapshot
        if start_offset < stored.start_offset:
            delivery_complete_count = stored.delivery_complete_count
        elif start_offset == stored.start_offset:
            delivery_complete_count = max(delivery_complete_count, stored.delivery_complete_count)
        start_offset = max(start_offset, stored.start_offset)
        if known.updates < self._config.snapshot_update_records_per_snapshot:
            merged = combine_batches((), batches, start_offset)
            update = ShareUpdateValue(stored.snapshot_epoch, leader_epoch, start_offset, merged, delivery_complete_count)
            return CoordinatorRecord(ShareUpdateKey(*key), update)
        now_ms = self._context.clock.now_ms()
        snapshot = ShareSnapshotValue(
            snapshot_epoch=stored.snapshot_epoch + 1,
            state_epoch=stored.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
            state_batches=combine_batches(stored.state_batches, batches, start_offset),
        )
        return CoordinatorRecord(ShareSnapshotKey(*key), snapshot)

    # ------------------------------------------------------------------------------------------------------------- upkeep

    def _watch_cold(self) -> None:
        self._context.schedule(_COLD, self._config.cold_partition_snapshot_interval_ms, self._begin_cold, retry=False)

    def _begin_cold(self) -> CoordinatorResult[None]:
        """Snapshot the share partitions whose last snapshot is old, unless all have had such a snapshot already."""
        snapshots = (each.snapshot for each in self.partitions.values())
        if all(snapshot.create_timestamp_ms != snapshot.write_timestamp_ms for snapshot in snapshots):
            self._watch_cold()
            return CoordinatorResult((), None)
        return self._snapshot_cold()

    def _snapshot_cold(self) -> CoordinatorResult[None]:
        """Snapshot some of these share partitions, and the others soon: clients are served in between."""
        now_ms = self._context.clock.now_ms()
        written_before_ms = now_ms - self._config.cold_partition_snapshot_interval_ms
        cold = (
            CoordinatorRecord(
                ShareSnapshotKey(*key),
                each.snapshot._replace(snapshot_epoch=each.snapshot.snapshot_epoch + 1, write_timestamp_ms=now_ms),
            )
            for key, each in self.partitions.items()
            if each.snapshot.write_timestamp_ms <= written_before_ms
        )
        records = list(islice(cold, _TOGETHER))
        if len(records) < _TOGETHER:
            self._watch_cold()
        else:
            self._context.schedule(_COLD, _PAUSE_MS, self._snapshot_cold, retry=False)
        return CoordinatorResult(records, None, atomic=False)

    def _watch_prune(self) -> None:
        self._context.schedule(_PRUNE, self._config.state_topic_prune_interval_ms, self._prune_log, retry=False)

    def _prune_log(self) -> CoordinatorResult[None]:
        """Remove the records that no load needs, once all that was written so far is committed."""
        self._watch_prune()
        offset = self.last_redundant_offset()
        if offset <= self.pruned_offset:
            return CoordinatorResult((), None)

        def prune() -> None:
            self._prune(self._context.partition, offset)
            self.pruned_offset = offset

        return CoordinatorResult((), None, on_commit=prune)

    def last_redundant_offset(self) -> int:
        """Return the offset below which no record is needed: that of the oldest snapshot still in use. -1 if all are needed."""
        last = self._last_snapshot_offset.get()
        return min((each.snapshot_offset for each in self.partitions.values()), default=last)


def _with_update(known: StoredShareState | None, update: ShareUpdateValue) -> StoredShareState:
    """Merge an update record. Without a snapshot before it, it keeps the whole log."""
    if known is None:
        return StoredShareState(updated(None, update), update.leader_epoch, NO_EPOCH, 1, _NO_OFFSET)
    return known._replace(
        snapshot=updated(known.snapshot, update),
        leader_epoch=max(known.leader_epoch, update.leader_epoch),
        updates=known.updates + 1,
    )


def _tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    return CoordinatorRecord(ShareSnapshotKey(*key), None)


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def decode_share_state_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Decode a record. Return None if the version of its key is unknown. Raises MalformedMessage."""
    decoded = decode_share_state_key(key)
    if isinstance(decoded, UnknownKey):
        return None
    return CoordinatorRecord(decoded, decode_value(decoded, value))
