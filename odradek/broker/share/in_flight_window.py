"""The window of a share partition: its records in flight, between the start offset and the end offset.

    start offset                                                          end offset
    | ACKNOWLEDGED  ACQUIRED  AVAILABLE  ACQUIRED  ARCHIVED  ...  ACQUIRED |  never fetched yet

Every record before the start offset is done with. Records behind the end offset have never been acquired. The start offset moves
on when the records there are done with, and when the log loses its first records.

The state that the share coordinator has stored may leave gaps between its batches: records that were acquired before the last
leader stopped, but not acknowledged. They are available, but in no batch here. Until they have been acquired once more,
``gap`` says where the first one may be.

The window is pure. Its other operations are in ``acquisition`` and ``acknowledgement``. Kafka's class is SharePartition.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

from odradek.broker.share.in_flight import InFlightBatch, InFlightState, RecordState
from odradek.coordinator.share.state import PartitionState

_first_offset: Final = attrgetter("first_offset")


class GapWindow(NamedTuple):
    """The offsets that may be in no batch, from ``start_offset`` on. Void once the window's end offset is another."""

    start_offset: int
    end_offset: int


class AcquisitionLock(NamedTuple):
    """The deadline of records that were acquired or renewed together. It does not count for those that have a later one."""

    deadline_ms: float
    first_offset: int
    last_offset: int


class InFlightWindow:
    """The batches in flight, in the order of their offsets.

    ``end_offset`` is the last offset in flight or, if there is none, the next one to fetch. ``delivery_complete_count`` is the
    number of records from the start offset on that are done with. No record in flight before ``available_from`` is available;
    None if none is.

    ``locks`` is a heap, by deadline. A lock stays in it when its records are acknowledged, split or renewed, until the window
    no longer has them, or it is the first one.
    """

    __slots__ = (
        "available_from",
        "batches",
        "delivery_complete_count",
        "end_offset",
        "gap",
        "locks",
        "start_offset",
        "state_epoch",
    )

    def __init__(self, start_offset: int = 0) -> None:
        self.batches: list[InFlightBatch] = []
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.delivery_complete_count = 0
        self.available_from: int | None = None
        self.locks: list[AcquisitionLock] = []
        self.gap: GapWindow | None = None
        self.state_epoch = 0

    @classmethod
    def load(cls, stored: PartitionState) -> "InFlightWindow":
        """Return the window of a stored state, whose start offset is known. Raises ValueError if the state contradicts itself."""
        window = cls(stored.start_offset)
        window.state_epoch = stored.state_epoch
        previous_end = window.start_offset - 1
        gap_start = -1
        for batch in stored.batches:
            if batch.first_offset < window.start_offset or batch.last_offset < batch.first_offset:
                raise ValueError(f"the stored state from offset {window.start_offset} on has the impossible {batch}")
            if gap_start < 0 and batch.first_offset > previous_end + 1:
                gap_start = previous_end + 1
            previous_end = batch.last_offset
            run = InFlightState(batch.first_offset, batch.last_offset, RecordState(batch.delivery_state), batch.delivery_count)
            window.batches.append(InFlightBatch([run]))
            window.count_complete(run)
        if window.batches:
            window.available_from = window.start_offset
            window.end_offset = previous_end
            if gap_start >= 0:
                window.gap = GapWindow(gap_start, previous_end)
            window.advance()
        return window

    # --------------------------------------------------------------------------------------------------------- questions

    @property
    def in_flight_records(self) -> int:
        """Return the number of offsets in the window, as the limit of locks counts them."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def open_gap(self) -> GapWindow | None:
        """Return the gap window unless it is void."""
        gap = self.gap
        return gap if gap is not None and gap.end_offset == self.end_offset else None

    def runs(self) -> Iterator[InFlightState]:
        """Yield all runs, in the order of their offsets."""
        for batch in self.batches:
            yield from batch.runs

    def can_acquire(self, most_locks: int) -> bool:
        """Return whether a record could be acquired, if the log has it."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.in_flight_records < most_locks

    def next_fetch_offset(self) -> int:
        """Return the offset to fetch from: the first available record's, else the one behind the window."""
        batches = self.batches
        if not batches or self.start_offset > batches[-1].last_offset:
            self.available_from = None
            return self.end_offset
        if self.available_from is not None:
            self.available_from = self._first_available(self.available_from)
            if self.available_from is None:
                # There is no gap either, so it need not hold the start offset back.
                self.gap = None
        return self.end_offset + 1 if self.available_from is None else self.available_from

    def _first_available(self, from_offset: int) -> int | None:
        gap = self.open_gap
        gap_start = -1 if gap is None else gap.start_offset
        begin = self.floor_index(from_offset) if gap is None else 0
        for batch in islice(self.batches, max(begin, 0), None):
            if gap is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            for run in batch.runs:
                if run.is_available:
                    return run.first_offset
        return None

    def runs_at(self, first_offset: int, last_offset: int) -> Iterator[InFlightState]:
        """Yield the runs with one of these offsets. The window may be changed meanwhile, but for its batches."""
        begin = max(self.floor_index(first_offset), 0)
        for batch in self.batches[begin : self.floor_index(last_offset) + 1]:
            if batch.last_offset >= first_offset:
                yield from batch.runs_at(first_offset, last_offset)

    def next_deadline_ms(self) -> float | None:
        """Return the earliest deadline of an acquisition lock; None if no record is acquired. Drop locks without records."""
        locks = self.locks
        while locks and not any(run.is_locked for run in self.runs_at(locks[0].first_offset, locks[0].last_offset)):
            heappop(locks)
        return locks[0].deadline_ms if locks else None

    def floor_index(self, offset: int) -> int:
        """Return the index of the last batch that begins at or before ``offset``; -1 if there is none."""
        return bisect_right(self.batches, offset, key=_first_offset) - 1

    def beginning_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that begin at one of these offsets."""
        begin = bisect_left(self.batches, first_offset, key=_first_offset)
        return self.batches[begin : bisect_right(self.batches, last_offset, lo=begin, key=_first_offset)]

    def size_from_start(self, first_offset: int, last_offset: int) -> int:
        """Return how many of these offsets are at or behind the start offset."""
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    # ----------------------------------------------------------------------------------------------------------- changes

    def insert(self, batch: InFlightBatch) -> None:
        """Add a batch."""
        self.batches.insert(self.floor_index(batch.first_offset) + 1, batch)

    def lock(self, deadline_ms: float, first_offset: int, last_offset: int) -> None:
        """Note the deadline of acquired records."""
        locks, batches = self.locks, self.batches
        while locks and locks[0].last_offset < batches[0].first_offset:
            heappop(locks)
        heappush(locks, AcquisitionLock(deadline_ms, first_offset, last_offset))

    def note_available(self, offset: int) -> None:
        """Note that the record at ``offset`` can be acquired."""
        if self.available_from is None or offset < self.available_from:
            self.available_from = offset

    def join(self, offset: int) -> None:
        """Make one run of the run with this offset and its neighbours in the same batch, if they are alike."""
        index = self.floor_index(offset)
        # The window may have moved on since the change began.
        if index >= 0 and self.batches[index].last_offset >= offset:
            self.batches[index].join(offset)

    def count_complete(self, run: InFlightState, times: int = 1) -> None:
        """Count the records of a run if they are done with; with -1, take the count back."""
        if run.state.is_terminal:
            self.delivery_complete_count += times * self.size_from_start(run.first_offset, run.last_offset)

    def note_acquired(self, next_offset: int) -> None:
        """Move the gap window on: everything before ``next_offset`` is in a batch, or is not in the log."""
        gap = self.gap
        if gap is not None:
            if self.batches:
                self.start_offset = max(self.start_offset, min(next_offset, self.batches[0].first_offset))
            still_open = gap.end_offset == self.end_offset and next_offset <= gap.end_offset
            self.gap = gap._replace(start_offset=next_offset) if still_open else None

    def archive(
        self, batches: Iterable[InFlightBatch], first_offset: int, last_offset: int, state: RecordState
    ) -> list[InFlightState]:
        """Archive the records in ``state`` at these offsets. Return their runs."""
        archived = []
        for batch in batches:
            if batch.first_offset > last_offset or batch.last_offset < first_offset:
                continue
            if not batch.is_split and batch.runs[0].state != state:
                continue
            for run in batch.between(first_offset, last_offset):
                if run.state == state:
                    run.archive()
                    archived.append(run)
        return archived

    def log_starts_at(self, log_start_offset: int) -> None:
        """Follow the log, whose first records have been removed. Acquired ones stay with their members."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        for batch in self.batches:
            for run in batch.runs:
                if run.state.is_terminal:
                    last_offset = min(run.last_offset, log_start_offset - 1)
                    self.delivery_complete_count -= self.size_from_start(run.first_offset, last_offset)
        self.archive(self.batches, self.start_offset, log_start_offset - 1, RecordState.AVAILABLE)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        gap = self.gap
        if gap is not None and gap.start_offset < log_start_offset:
            self.gap = gap._replace(start_offset=log_start_offset)
        # Records below the log start that are done with would stay until the next acknowledgement.
        self.advance()

    def advance(self) -> bool:
        """Move the start offset behind the records that are done with, and forget these. Return False if nothing has changed."""
        if not self._can_advance():
            return False
        self._move_gap()
        last_done, done_records = self._done_at_start()
        batches = self.batches
        if last_done < 0:
            return False
        if last_done == batches[-1].last_offset:
            # The log may start behind all of them.
            self.start_offset = self.end_offset = max(last_done + 1, self.start_offset)
            self.delivery_complete_count = 0
            batches.clear()
            return True
        before = self.start_offset
        index = self.floor_index(last_done)
        if last_done == batches[index].last_offset:
            index += 1
            self.start_offset = max(batches[index].first_offset, self.start_offset)
            gap = self.open_gap
            if gap is not None:
                self.start_offset = min(gap.start_offset, self.start_offset)
        else:
            self.start_offset = max(last_done + 1, self.start_offset)
        self.delivery_complete_count -= done_records
        del batches[:index]
        # Below the log start, members may still have records behind others that are done with.
        return index > 0 or self.start_offset != before

    def _can_advance(self) -> bool:
        index = self.floor_index(self.start_offset)
        return index >= 0 and self.batches[index].run_at(self.start_offset).is_done

    def _move_gap(self) -> None:
        """Move the gap window behind the batches at its start. In Kafka the start offset stays there until records are read."""
        gap = self.open_gap
        if gap is None:
            return
        start = gap.start_offset
        for batch in islice(self.batches, max(self.floor_index(start), 0), None):
            if batch.first_offset > start:
                break
            start = max(start, batch.last_offset + 1)
        self.gap = gap._replace(start_offset=start) if start <= gap.end_offset else None

    def _done_at_start(self) -> tuple[int, int]:
        """Return the last offset before which everything is done with, -1 if there is none; and the number of these records."""
        last_done, records = -1, 0
        gap = self.open_gap
        for batch in self.batches:
            if gap is not None and batch.last_offset >= gap.start_offset:
                break
            for run in batch.runs:
                if not run.is_done:
                    return last_done, records
                last_done = run.last_offset
                records += self.size_from_start(run.first_offset, run.last_offset)
        return last_done, records
