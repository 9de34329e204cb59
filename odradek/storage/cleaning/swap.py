"""A clean of a log as the loop sees it: the job, carried out elsewhere, and the swap that takes in its result.

The swap replaces segments by their cleaned segment, so that a crash at any point leaves one or the other.

    thread  the ``.cleaned`` files are written and synced, also their names     a start removes them
    loop    ``.cleaned`` -> ``.swap``, the .log first
    thread  directory synced                                                     from here on a start finishes the swap
    loop    the log has the new segment; files of the old -> ``.deleted``
    thread  directory synced
    loop    .log.swap -> .log
    thread  directory synced                                                     what is called .index, ... is the new segment's
    loop    the indexes' ``.swap`` -> their final names
    thread  directory synced

The loop never waits for the disk. The thread lets the loop run a step with ``on_loop``, which returns the result or raises the
exception. odradek.storage.log.segment_files finishes an interrupted swap at a start.

``clean_log`` cleans a log from the job to the last swap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from odradek.storage.cleaning.batch_filter import LastRecord
from odradek.storage.cleaning.cleaner import CleaningAborted, CleanPlan, CleanStats, Source, SwapIn
from odradek.storage.cleaning.segment_writer import CleanedSegment
from odradek.storage.errors import LogCorrupt
from odradek.storage.log.log import Log
from odradek.storage.log.segment import Segment
from odradek.storage.log.segment_files import CLEANED_SUFFIX, SWAP_SUFFIX

_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanJob:
    """One clean of ``log``. ``segments`` are those of the plan's sources, in the same order."""

    log: Log
    plan: CleanPlan
    segments: tuple[Segment, ...]
    truncations: int

    @property
    def is_void(self) -> bool:
        """Return whether the log was closed or truncated since the job was made. Any thread."""
        return self.log.is_closed or self.log.truncations != self.truncations

    @classmethod
    def of(cls, log: Log, first_dirty_offset: int, first_uncleanable_offset: int, now_ms: int) -> "CleanJob":
        """Plan the clean of ``log`` between these offsets. Loop thread. Raises KafkaError, OSError."""
        found = [
            (segment, next_offset)
            for segment, next_offset in log.segments.with_ends(log.log_end_offset)
            if next_offset <= first_uncleanable_offset
        ]
        dirty_position = next(
            (
                segment.offset_index.position_before(first_dirty_offset)
                for segment, next_offset in found
                if segment.base_offset <= first_dirty_offset < next_offset
            ),
            0,
        )
        indexes = []
        for segment in log.segments:
            if segment.transaction_index is not None:
                segment.transaction_index.write_out()
                indexes.append((segment.transaction_index.path, segment.transaction_index.size_bytes))
        plan = CleanPlan(
            directory=log.directory,
            config=log.config,
            sources=tuple(_source(segment, next_offset) for segment, next_offset in found),
            first_dirty_offset=first_dirty_offset,
            dirty_position=dirty_position,
            first_uncleanable_offset=first_uncleanable_offset,
            synced_offset=log.recovery_point,
            last_records={
                producer_id: LastRecord(producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
                for producer_id, producer in log.producers.by_id.items()
            },
            transaction_indexes=tuple(indexes),
            unsynced_later=tuple(
                segment.path
                for segment, next_offset in log.segments.with_ends(log.log_end_offset)
                if next_offset > max(first_uncleanable_offset, log.recovery_point)
            ),
            now_ms=now_ms,
        )
        return cls(log=log, plan=plan, segments=tuple(segment for segment, _ in found), truncations=log.truncations)

    def segments_of(self, group: Sequence[Source]) -> list[Segment]:
        """Return the segments of ``group``, which are some of the plan's sources."""
        wanted = {source.base_offset for source in group}
        return [segment for segment in self.segments if segment.base_offset in wanted]


def _source(segment: Segment, next_offset: int) -> Source:
    return Source(
        segment.base_offset,
        next_offset,
        segment.path,
        segment.size,
        segment.offset_index.entry_count * _OFFSET_ENTRY_BYTES,
        segment.time_index.entry_count * _TIME_ENTRY_BYTES,
    )


T = TypeVar("T")


class OnLoop(Protocol):
    """Runs an action on the loop thread, and waits for it."""

    def __call__(self, action: Callable[[], T]) -> T:
        """Return the result of ``action``, or raise its exception."""
        ...


def swap_in(job: CleanJob, group: Sequence[Source], cleaned: CleanedSegment, on_loop: OnLoop) -> None:
    """Let ``cleaned`` replace ``group``. Raises CleaningAborted, OSError."""
    swap = _Swap(job, group, cleaned)
    file_system, directory = job.log.file_system, job.plan.directory
    on_loop(swap.begin)
    file_system.sync_dir(directory)
    on_loop(swap.replace)
    file_system.sync_dir(directory)
    on_loop(swap.name_log)
    file_system.sync_dir(directory)
    on_loop(swap.name_indexes)
    file_system.sync_dir(directory)


class _Swap:
    """One swap. Its methods are called in order, on the loop."""

    def __init__(self, job: CleanJob, group: Sequence[Source], cleaned: CleanedSegment) -> None:
        self._job = job
        self._log = job.log
        self._old = job.segments_of(group)
        self._cleaned = cleaned
        self._file_system = job.log.file_system
        self._new: Segment | None = None

    def begin(self) -> None:
        try:
            self._ensure_wanted()
            for kind in self._cleaned.suffixes:
                self._cleaned.rename(self._file_system, kind, CLEANED_SUFFIX, SWAP_SUFFIX)
        except (CleaningAborted, OSError):
            self._forget(CLEANED_SUFFIX, SWAP_SUFFIX)
            raise

    def replace(self) -> None:
        try:
            self._ensure_wanted()
            new = self._cleaned.open(self._file_system, self._log.config, self._old[-1].created_ms, SWAP_SUFFIX)
        except (CleaningAborted, OSError):
            self._forget(SWAP_SUFFIX)
            raise
        self._new = new
        self._log.retention.replace_segments(self._old, new)

    def name_log(self) -> None:
        self._name(self._cleaned.suffixes[:1])

    def name_indexes(self) -> None:
        self._name(self._cleaned.suffixes[1:])

    def _name(self, kinds: Sequence[str]) -> None:
        new = self._required()
        for kind in kinds:
            self._cleaned.rename(self._file_system, kind, SWAP_SUFFIX, "")
            new.use_name(kind, "")

    def _required(self) -> Segment:
        """Return the new segment. Raises CleaningAborted if the log is closed: a start finishes the swap."""
        if self._log.is_closed or self._new is None:
            raise CleaningAborted
        return self._new

    def _ensure_wanted(self) -> None:
        """Raise CleaningAborted unless the job is valid, and the log has all segments to be replaced."""
        if self._job.is_void or not self._log.segments.has_all(self._old):
            raise CleaningAborted

    def _forget(self, *suffixes: str) -> None:
        # If the directory was renamed meanwhile, its old name has no such files.
        for suffix in suffixes:
            self._cleaned.remove(self._file_system, suffix)


def clean_log(job: CleanJob, clean: Callable[[SwapIn], CleanStats], on_loop: OnLoop) -> CleanStats:
    """Clean a log, in any thread if ``on_loop`` runs its argument on the loop.

    ``clean`` carries out the job's plan (``cleaner``), here or in another process, and calls its argument with each cleaned
    segment. Raises LogCorrupt, OSError, CleaningAborted, and any other error of ``clean``. Segments swapped in before an error
    stay; nothing else is left behind.
    """
    try:
        return clean(lambda group, cleaned: swap_in(job, group, cleaned, on_loop))
    except LogCorrupt as error:
        # The files may be another log's by now.
        if job.is_void:
            raise CleaningAborted from error
        raise
