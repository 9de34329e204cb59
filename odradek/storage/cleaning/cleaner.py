"""One clean of a log: a first pass over the dirty part notes each key's last offset, a second pass writes the records that stay.

The first pass ends at the first uncleanable offset, or earlier if no more keys fit into memory. The next clean then continues
there. The second pass goes from the log's first segment to the one where the first pass ended, group by group. Each group of
segments becomes one segment, which is swapped in before the next group begins (odradek.storage.cleaning.swap).

A clean runs in any thread or process. It reads files that the loop no longer writes, with its own handles. ``pace`` is called
every few hundred records with the bytes read and written since. It may wait, and raise CleaningAborted.

Left out: splitting overflowed segments of Kafka before 2.0.

``Throttle`` tells how far a clean is ahead of ``log.cleaner.io.max.bytes.per.second``.

``CleanPlan`` is the input as plain values, for use in a thread or in another process.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.legacy_records import read_legacy_records
from odradek.protocol.record_batch import MAGIC, BatchHeader, Buffer, ensure_intact, iter_batches, read_header
from odradek.storage.cleaning.batch_filter import GONE, BatchFilter, CleanedTransactions, LastRecord
from odradek.storage.cleaning.record_spans import OffsetMap, legacy_spans, payload, spans
from odradek.storage.cleaning.segment_writer import CleanedSegment, SegmentWriter
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment import MAX_RELATIVE_OFFSET
from odradek.storage.log.transaction_index import AbortedTransaction, TransactionIndex


class CleaningAborted(Exception):
    """The log was closed, moved, deleted or truncated, or the broker stops: segments not swapped in are dropped."""


class CleanerDied(Exception):
    """The cleaning process has ended: it was killed, perhaps by the system for its memory."""


class Source(NamedTuple):
    """A segment to be cleaned. ``size`` and the index sizes are in bytes; ``next_offset`` is the next segment's base."""

    base_offset: int
    next_offset: int
    path: str
    size: int
    index_bytes: int
    time_index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan:
    """One clean of one log. ``sources`` are all its segments below ``first_uncleanable_offset``, a segment's base offset.

    The dirty part begins at ``first_dirty_offset``. A batch at or before it begins at ``dirty_position`` of its segment. Records
    below ``synced_offset`` are on disk. ``transaction_indexes`` has (path, size in bytes) of all segments, in order.
    ``unsynced_later`` has the paths of later segments that may not be on disk.
    """

    directory: str
    config: LogConfig
    sources: tuple[Source, ...]
    first_dirty_offset: int
    dirty_position: int
    first_uncleanable_offset: int
    synced_offset: int
    last_records: Mapping[int, LastRecord]
    transaction_indexes: tuple[tuple[str, int], ...]
    unsynced_later: tuple[str, ...]
    now_ms: int


def grouped(sources: Sequence[Source], config: LogConfig) -> list[list[Source]]:
    """Group ``sources``: adjacent segments whose current content fits into one segment.

    The limits are ``segment.bytes``, ``segment.index.bytes`` for each index, and the range of relative offsets.
    """
    groups: list[list[Source]] = []
    size = index_bytes = time_index_bytes = 0
    for source in sources:
        size += source.size
        index_bytes += source.index_bytes
        time_index_bytes += source.time_index_bytes
        if (
            groups
            and size <= config.segment_bytes
            and max(index_bytes, time_index_bytes) <= config.segment_index_bytes
            and (not source.size or source.next_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        ):
            groups[-1].append(source)
            continue
        groups.append([source])
        size, index_bytes, time_index_bytes = source.size, source.index_bytes, source.time_index_bytes
    return groups


# The work between two calls of ``pace``: a record counts one, a batch some more.
_STEP_COST = 256
_BATCH_COST = 4
Pace = Callable[[int], None]
SwapIn = Callable[[list[Source], CleanedSegment], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerLimits:
    """Limits of a clean: bytes for keys, the fraction of them to fill, and bytes to read at once."""

    dedupe_buffer_bytes: int
    load_factor: float
    io_buffer_bytes: int


@dataclass(slots=True)
class CleanStats:
    """The result of a clean; the next one begins at ``end_offset``. ``map_utilization``: 1.0 is all of its memory."""

    end_offset: int = -1
    map_utilization: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    read_records: int = 0
    kept_records: int = 0
    keyless_records: int = 0


def clean(plan: CleanPlan, file_system: FileSystem, limits: CleanerLimits, pace: Pace, swap_in: SwapIn) -> CleanStats:
    """Clean a log; ``swap_in`` is called with each group of segments and the cleaned segment.

    Raises LogCorrupt for an unreadable log, OSError, and the errors of ``pace`` and ``swap_in``. A segment that was not given to
    ``swap_in`` is removed.
    """
    return _Clean(plan, file_system, limits, pace).run(swap_in)


class _Clean:
    """A clean under way."""

    def __init__(self, plan: CleanPlan, file_system: FileSystem, limits: CleanerLimits, pace: Pace) -> None:
        self._plan = plan
        self._file_system = file_system
        self._limits = limits
        self._pace = pace
        self._cost = 0
        self._unpaced_bytes = 0
        self._stats = CleanStats()
        # In segments written after this time (ms since the epoch), tombstones in formats v0 and v1 stay.
        self._legacy_horizon_ms: int | None = None
        # The place of the last read, for error messages.
        self._place = plan.directory

    def run(self, swap_in: SwapIn) -> CleanStats:
        try:
            self._run(swap_in)
        except (MalformedMessage, KafkaError) as error:
            raise LogCorrupt(f"{self._place}: {error.reason}") from error
        return self._stats

    def _run(self, swap_in: SwapIn) -> None:
        plan, stats = self._plan, self._stats
        aborted = self._aborted_transactions()
        offsets = OffsetMap(self._limits.dedupe_buffer_bytes, self._limits.load_factor)
        # Transactions that ended before the dirty part have no marker in it.
        ending = [transaction for transaction in aborted if transaction.last_offset >= plan.first_dirty_offset]
        noted = CleanedTransactions(ending)
        self._note_keys(offsets, noted)
        self._sync(source.path for source in plan.sources if source.next_offset > plan.synced_offset)
        if noted.has_open:
            # A transaction that loses its marker could still end differently.
            self._sync(plan.unsynced_later)
        self._file_system.sync_dir(plan.directory)
        self._legacy_horizon_ms = self._find_legacy_horizon()
        stats.end_offset = offsets.latest_offset + 1
        stats.map_utilization = offsets.utilization
        batches = BatchFilter(
            offsets,
            CleanedTransactions(aborted),
            plan.last_records,
            now_ms=plan.now_ms,
            delete_retention_ms=plan.config.delete_retention_ms,
        )
        for group in grouped([source for source in plan.sources if source.base_offset < stats.end_offset], plan.config):
            cleaned = self._clean_group(group, batches)
            if cleaned is not None:
                swap_in(group, cleaned)
        stats.read_records = batches.read_records
        stats.kept_records = batches.kept_records
        stats.keyless_records = batches.keyless_records

    def _find_legacy_horizon(self) -> int | None:
        """Return ``delete.retention.ms`` before the last write to the last clean segment; None if there is none."""
        clean = [source for source in self._plan.sources if source.base_offset < self._plan.first_dirty_offset]
        return self._file_system.modified_ms(clean[-1].path) - self._plan.config.delete_retention_ms if clean else None

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in the part to clean, wherever their markers are."""
        found: list[AbortedTransaction] = []
        for path, size in self._plan.transaction_indexes:
            more, is_all = TransactionIndex(self._file_system, path, size).collect(0, self._plan.first_uncleanable_offset)
            found += more
            if is_all:
                break
        return found

    def _note_keys(self, offsets: OffsetMap, transactions: CleanedTransactions) -> None:
        """Do the first pass."""
        dirty_offset = self._plan.first_dirty_offset
        for source in self._plan.sources:
            if source.next_offset <= dirty_offset:
                continue
            position = self._plan.dirty_position if source.base_offset <= dirty_offset else 0
            for chunk, batches in self._chunks(source, position):
                for at, header in batches:
                    self._step(header)
                    if not self._note_batch(offsets, transactions, header, chunk[at : at + header.size_bytes]):
                        return
                    if header.last_offset >= dirty_offset:
                        offsets.latest_offset = header.last_offset
            # An earlier clean may have removed the segment's last offsets.
            offsets.latest_offset = source.next_offset - 1

    def _sync(self, paths: Iterable[str]) -> None:
        """Sync segments: a superseding record must be on disk before the record that it supersedes is removed."""
        for path in paths:
            file = self._file_system.open(path)
            file.sync()
            file.close()

    def _note_batch(self, offsets: OffsetMap, transactions: CleanedTransactions, header: BatchHeader, batch: memoryview) -> bool:
        """Note the keys of one batch. Return False if the map is full, with as many keys noted as fit."""
        if header.is_control:
            transactions.is_spent(header, batch)
            return True
        if transactions.is_aborted(header):
            return True
        if header.magic == MAGIC:
            records = spans(header, payload(header, batch))
        else:
            records = legacy_spans(header, read_legacy_records(header, batch))
        return offsets.put_all(header.base_offset, records, self._plan.first_dirty_offset)

    def _clean_group(self, group: list[Source], batches: BatchFilter) -> CleanedSegment | None:
        """Write the retained records of ``group``. Return None if that would change nothing."""
        plan = self._plan
        writer = SegmentWriter(self._file_system, plan.directory, group[0].base_offset, plan.config)
        batches.upper_offset = group[-1].next_offset
        try:
            # Leave no files in a directory that has meanwhile become another log's.
            self._pace(0)
            is_unchanged = len(group) == 1
            modified_ms = -1
            for source in group:
                modified_ms = self._file_system.modified_ms(source.path)
                horizon_ms = self._legacy_horizon_ms
                batches.drops_legacy_tombstones = horizon_ms is not None and modified_ms <= horizon_ms
                for chunk, found in self._chunks(source, 0):
                    is_unchanged &= self._clean_chunk(chunk, found, batches, writer)
            if is_unchanged:
                batches.take_kept_aborts()
                writer.discard()
                return None
            cleaned = writer.finish(batches.take_kept_aborts(), modified_ms)
            self._stats.written_bytes += writer.size
        except BaseException:
            writer.discard()
            raise
        return cleaned

    def _clean_chunk(
        self, chunk: memoryview, found: list[tuple[int, BatchHeader]], batches: BatchFilter, writer: SegmentWriter
    ) -> bool:
        """Write the retained part of ``found``, batches in ``chunk``; adjacent ones as one copy. Return whether all is kept."""
        buffers: list[Buffer] = []
        written: list[tuple[int, int, int]] = []
        run_start = run_end = 0
        is_unchanged = True
        for at, header in found:
            self._step(header)
            end = at + header.size_bytes
            result = batches.apply(header, chunk[at:end])
            if result is None:
                written.append((end - at, header.last_offset, _indexed_timestamp(header)))
                run_end = end
                continue
            is_unchanged = False
            if run_end > run_start:
                buffers.append(chunk[run_start:run_end])
            run_start = run_end = end
            if result is not GONE:
                buffers.append(result)
                rewritten = read_header(result)
                written.append((len(result), rewritten.last_offset, _indexed_timestamp(rewritten)))
        if run_end > run_start:
            buffers.append(chunk[run_start:run_end])
        if buffers:
            writer.append(buffers, written)
            self._unpaced_bytes += sum(len(buffer) for buffer in buffers)
        return is_unchanged

    def _chunks(self, source: Source, position: int) -> Iterator[tuple[memoryview, list[tuple[int, BatchHeader]]]]:
        """Yield a segment's batches from ``position`` on, as many at a time as a buffer holds, after checking each."""
        file = self._file_system.open(source.path)
        # If the log was renamed meanwhile, another log may have its name.
        self._pace(0)
        try:
            while position < source.size:
                self._place = f"{source.path}, from position {position} on"
                chunk = file.pread(min(self._limits.io_buffer_bytes, source.size - position), position)
                found = list(iter_batches(chunk))
                if not found:
                    chunk = file.pread(self._size_of_first(chunk, source.size - position), position)
                    found = list(iter_batches(chunk))
                self._stats.read_bytes += len(chunk)
                self._unpaced_bytes += len(chunk)
                for at, header in found:
                    ensure_intact(header, chunk, at)
                yield memoryview(chunk), found
                at, header = found[-1]
                position += at + header.size_bytes
        finally:
            file.close()

    def _size_of_first(self, chunk: bytes, available: int) -> int:
        """Return the size of a batch that is larger than a buffer. Raises MalformedMessage."""
        header = read_header(chunk)
        if not 0 <= header.magic <= MAGIC or not len(chunk) < header.size_bytes <= available:
            raise MalformedMessage(
                f"a batch with magic {header.magic} has {header.size_bytes} bytes, but the segment has {available}"
            )
        return header.size_bytes

    def _step(self, header: BatchHeader) -> None:
        self._cost += _BATCH_COST + header.record_count
        if self._cost >= _STEP_COST:
            self._cost = 0
            self._pace(self._unpaced_bytes)
            self._unpaced_bytes = 0


def _indexed_timestamp(header: BatchHeader) -> int:
    """Return a batch's max timestamp for the index; -1 without records, as no record has that timestamp."""
    return header.max_timestamp if header.record_count else -1


class Throttle:
    """Counts the bytes that one clean reads and writes, since ``began_ms`` (monotonic)."""

    __slots__ = ("_began_ms", "_bytes", "_bytes_per_ms")

    def __init__(self, bytes_per_second: float, began_ms: float) -> None:
        self._bytes_per_ms = bytes_per_second / 1000
        self._began_ms = began_ms
        self._bytes = 0

    def ahead_ms(self, size_bytes: int, now_ms: float) -> float:
        """Return how long the clean must wait, after another ``size_bytes`` read and written; below 0 if it is late."""
        self._bytes += size_bytes
        return self._bytes / self._bytes_per_ms - (now_ms - self._began_ms)
