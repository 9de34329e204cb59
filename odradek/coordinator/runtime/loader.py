"""Replays logs into shards, one slice at a time, so that the loop can serve other requests in between.

Shards load one after the other, in the order requested. A slice ends after a few milliseconds or some hundreds of records,
whichever comes first. Records at or above the high watermark are replayed as uncommitted.

Control batches and transactional batches are replayed only into a ``TransactionalShard``. For other shards they count as skipped.

An unreadable record is skipped and reported: a client with the id ``__admin_client`` may write anything to the topic. A batch
with a wrong CRC is damage, and the shard fails.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from odradek.coordinator.runtime.ports import TransactionalShard
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.coordinator.runtime.states import ShardState
from odradek.coordinator.runtime.timeline import COMMITTED
from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import BatchHeader, ensure_intact, iter_batches
from odradek.protocol.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.coordinator.runtime.environment import RuntimeEnvironment
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from odradek.coordinator.runtime.result import CoordinatorRecord

_SLICE_MS: Final = 3.0
_SLICE_STEPS: Final = 12
# The cost between two looks at the clock: some fifty offsets, or one group with a few dozen members.
_STEP_COST: Final = 4096
_RECORD_COST: Final = 64
# After this many records, a garbage collection takes tens of milliseconds.
_MANY_RECORDS: Final = 10_000


class _Load:
    """The load of one shard, under way."""

    __slots__ = (
        "_first_unreadable",
        "_unreadable_records",
        "bytes",
        "hosted",
        "records",
        "skipped_records",
        "started_ms",
        "steps",
    )

    def __init__(self, hosted: HostedShard[Any], environment: RuntimeEnvironment[Any]) -> None:
        self.hosted = hosted
        self.started_ms = environment.clock.monotonic_ms()
        self.records = 0
        self.skipped_records = 0
        self.bytes = 0
        self._unreadable_records = 0
        self._first_unreadable: tuple[int, Exception] | None = None
        self.steps = self._replay(environment)

    def _replay(self, environment: RuntimeEnvironment[Any]) -> Iterator[None]:
        """Replay the whole log, pausing after each step."""
        log = self.hosted.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            data = log.read(offset, environment.load_buffer_bytes)
            if not data:
                # Compaction has removed all remaining records, but not their offsets.
                return
            read_from = offset
            for position, header in iter_batches(data):
                ensure_intact(header, data, position)
                try:
                    if header.is_control:
                        self._replay_control_batch(header, data, position)
                    elif header.is_transactional and not isinstance(self.hosted.shard, TransactionalShard):
                        self.skipped_records += header.record_count
                    else:
                        producer_id = header.producer_id if header.is_transactional else None
                        yield from self._replay_batch(environment, read_batch(data, position), producer_id)
                except MalformedMessage as error:
                    # The rest of the batch, or the whole batch, is unreadable.
                    self._note_unreadable(header.base_offset, error)
                offset = header.next_offset
                self.bytes += header.size_bytes
            if offset == read_from:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"cannot read a batch at offset {offset}")

    def _replay_batch(
        self,
        environment: RuntimeEnvironment[Any],
        records: Iterator[tuple[int, bytes | None, bytes | None]],
        producer_id: int | None,
    ) -> Iterator[None]:
        decode = environment.decode
        shard = self.hosted.shard
        replay = shard.replay if producer_id is None else partial(_replay_in_transaction, shard, producer_id)
        snapshots = self.hosted.context.snapshots
        high_watermark = self.hosted.log.high_watermark
        cost = 0
        for offset, key, value in records:
            try:
                record = None if key is None else decode(key, value)
            except Exception as error:  # noqa: BLE001  a client may have written anything there
                self._note_unreadable(offset, error)
                record = None
            if record is None:
                self.skipped_records += 1
            else:
                snapshots.offset = COMMITTED if offset < high_watermark else offset
                replay(record, offset)
            self.records += 1
            cost += _RECORD_COST + len(value or b"")
            if cost >= _STEP_COST:
                cost = 0
                yield
        yield

    def _replay_control_batch(self, header: BatchHeader, data: bytes, position: int) -> None:
        hosted = self.hosted
        marker_record = next(read_batch(data, position), None)
        if marker_record is None:
            # Compaction has removed the marker, and keeps the batch for its producer's sake.
            return
        offset, key, value = marker_record
        kind, coordinator_epoch = read_control_record(Record(key=key, value=value))
        if kind not in (ABORT, COMMIT) or not isinstance(hosted.shard, TransactionalShard):
            self.skipped_records += header.record_count
            return
        hosted.context.snapshots.offset = COMMITTED if offset < hosted.log.high_watermark else offset
        marker = EndTxnMarker(header.producer_id, header.producer_epoch, coordinator_epoch, kind == COMMIT)
        hosted.shard.replay_marker(marker)
        self.records += 1

    def _note_unreadable(self, offset: int, error: Exception) -> None:
        self._unreadable_records += 1
        if self._first_unreadable is None:
            self._first_unreadable = offset, error

    def log_skipped(self, on_fault: Callable[[str, Exception], None]) -> None:
        """Report the skipped records, if any, in one line."""
        if self._first_unreadable is not None:
            offset, error = self._first_unreadable
            reason = KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the first is at offset {offset}: {error!r}")
            on_fault(f"{self._unreadable_records} unreadable records of partition {self.hosted.partition} were skipped", reason)


def _replay_in_transaction(shard: TransactionalShard, producer_id: int, record: CoordinatorRecord, offset: int) -> None:
    shard.replay_in_transaction(record, offset, producer_id)


class LoadQueue:
    """The loads of one runtime. Loop thread only."""

    def __init__(self, environment: RuntimeEnvironment[Any]) -> None:
        self._environment = environment
        self._loads: deque[_Load] = deque()
        self._unreported_records = 0

    def __len__(self) -> int:
        return len(self._loads)

    def add(self, hosted: HostedShard[Any]) -> None:
        """Queue the load of ``hosted``, which is LOADING. An empty log is loaded before this call returns."""
        load = _Load(hosted, self._environment)
        if hosted.log.log_start_offset == hosted.log.log_end_offset:
            self._run_steps(load)
            return
        self._loads.append(load)
        if len(self._loads) == 1:
            self._environment.logs.call_soon(self._run_slice)

    def _run_slice(self) -> None:
        load = self._loads[0]
        records_before = load.records
        # The shard may have been unloaded since.
        if load.hosted.state is not ShardState.LOADING or self._run_steps(load):
            self._loads.popleft()
        self._unreported_records += load.records - records_before
        if self._unreported_records >= _MANY_RECORDS:
            self._unreported_records = 0
            self._environment.on_bulk_load()
        if self._loads:
            self._environment.logs.call_soon(self._run_slice)

    def _run_steps(self, load: _Load) -> bool:
        """Run one slice of ``load``. Return True when the load has ended."""
        environment = self._environment
        monotonic_ms = environment.clock.monotonic_ms
        deadline_ms = monotonic_ms() + _SLICE_MS
        try:
            for step, _ in enumerate(load.steps, 1):
                if step == _SLICE_STEPS or monotonic_ms() >= deadline_ms:
                    return False
            load.log_skipped(environment.on_fault)
            load.hosted.activate(environment.clock.now_ms())
        except Exception as error:  # noqa: BLE001  a bad log costs this shard, not the broker
            environment.counters.failed_loads += 1
            environment.on_fault(f"cannot load partition {load.hosted.partition}", error)
            load.hosted.close(ShardState.FAILED)
        else:
            environment.counters.count_load(load.records, load.skipped_records, load.bytes, monotonic_ms() - load.started_ms)
        return True
