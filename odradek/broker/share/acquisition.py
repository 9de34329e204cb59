"""Acquiring records: gives the records of fetched batches to a member, as far as they are available.

Records that are new to the window become batches in flight. Acquire mode ``batch_optimized`` gives whole record batches, also a
few records more than asked for; ``record_limit`` never gives more (KIP-1206). Records that were delivered too often are given out
in ever smaller numbers, so that a poison record is found: from half of the delivery count limit on, half of the batch, then a
quarter; at the last attempt, each record alone.

Pure: the records' positions are arguments (``ReadBatch``). Kafka's method is SharePartition.acquire.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from odradek.broker.share.in_flight import InFlightBatch, InFlightState, RecordState, ShareLimits
from odradek.broker.share.in_flight_window import InFlightWindow
from odradek.protocol.message_types.share_fetch import AcquiredRecords

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1
ACQUIRE_MODES: Final = frozenset({BATCH_OPTIMIZED, RECORD_LIMIT})
# With fewer deliveries than this, no record is throttled, and none is delivered alone.
_MIN_THROTTLED_DELIVERIES: Final = 2


class ReadBatch(NamedTuple):
    """A record batch as read from the log: its offsets, and its place in the bytes read.

    ``is_abort`` is True for the marker of an aborted transaction.
    """

    base_offset: int
    last_offset: int
    position: int
    size_bytes: int
    producer_id: int = -1
    is_transactional: bool = False
    is_abort: bool = False


class AcquireRequest(NamedTuple):
    """The member's wishes. ``fetch_offset`` is the offset that the batches were read from."""

    member_id: str
    fetch_offset: int
    max_records: int
    batch_size: int
    has_record_limit: bool
    lock_deadline_ms: float


def acquire(
    window: InFlightWindow, request: AcquireRequest, limits: ShareLimits, batches: Sequence[ReadBatch]
) -> list[AcquiredRecords]:
    """Acquire records of the batches for a member. Return their offsets."""
    if request.max_records <= 0 or not batches or batches[-1].last_offset < window.start_offset:
        return []
    last_offset = batches[-1].last_offset
    most = min(request.max_records, limits.partition_max_record_locks - window.in_flight_records)
    if most <= 0:
        # The window is full, but records within it may be available.
        most = min(request.max_records, window.end_offset - request.fetch_offset + 1)
        last_offset = min(last_offset, window.end_offset)
        if most <= 0:
            return []
    return _Acquisition(window, request, limits, batches).acquire(last_offset, most)


class _Acquisition:
    """One call of ``acquire``. ``count`` is the number of offsets acquired so far."""

    __slots__ = ("_batches", "_limits", "_request", "_throttle_from", "_window", "acquired", "count")

    def __init__(
        self, window: InFlightWindow, request: AcquireRequest, limits: ShareLimits, batches: Sequence[ReadBatch]
    ) -> None:
        self._window = window
        self._request = request
        self._limits = limits
        self._batches = batches
        self._throttle_from = max(_MIN_THROTTLED_DELIVERIES, (limits.delivery_count_limit + 1) // 2)
        self.acquired: list[AcquiredRecords] = []
        self.count = 0

    def acquire(self, last_offset: int, most: int) -> list[AcquiredRecords]:
        window = self._window
        first_read = self._batches[0].base_offset
        base_offset = self._first_offset(first_read)
        known = window.beginning_in(min(first_read, base_offset), last_offset)
        next_gap = base_offset
        for batch in known:
            if self.count >= most:
                break
            if window.open_gap is not None:
                if next_gap < batch.first_offset:
                    self._acquire_new(next_gap, batch.first_offset - 1, most - self.count)
                next_gap = batch.last_offset + 1
                if self.count >= most:
                    break
            is_throttled = self._is_throttled(batch, first_read, last_offset)
            if is_throttled and self.count > 0:
                most = 0
                break
            before = self.count
            self._acquire_known(batch, first_read, last_offset, most - self.count, is_throttled)
            if is_throttled and self.count > before:
                most = 0
                break
        next_new = known[-1].last_offset + 1 if known else base_offset
        if self.count < most and (not known or next_new <= last_offset):
            self._acquire_new(next_new, last_offset, most - self.count)
        # Without records to acquire, there is none between the batches in flight either.
        window.note_acquired(self.acquired[-1].last_offset + 1 if self.acquired else next_new)
        self._lock()
        return self.acquired

    def _lock(self) -> None:
        """Note the deadline, once for all neighbours."""
        acquired, begin = self.acquired, 0
        for index, (_, last_offset, _) in enumerate(acquired, 1):
            if index == len(acquired) or acquired[index].first_offset > last_offset + 1:
                self._window.lock(self._request.lock_deadline_ms, acquired[begin].first_offset, last_offset)
                begin = index

    def _first_offset(self, first_read: int) -> int:
        """Return the offset to begin at: of the batch in flight that has the first record read, or the record's own."""
        window = self._window
        self._archive_missing(first_read)
        index = window.floor_index(first_read)
        if index >= 0 and window.batches[index].last_offset >= first_read:
            return window.batches[index].first_offset
        return max(first_read, window.start_offset)

    def _archive_missing(self, first_read: int) -> None:
        """Archive available records that the log no longer has: the read began behind them."""
        window = self._window
        if window.batches and self._request.fetch_offset < first_read:
            batches = window.batches[max(window.floor_index(self._request.fetch_offset), 0) :]
            for run in window.archive(batches, self._request.fetch_offset, first_read - 1, RecordState.AVAILABLE):
                window.count_complete(run)

    # ------------------------------------------------------------------------------------------------- batches in flight

    def _is_throttled(self, batch: InFlightBatch, first_offset: int, last_offset: int) -> bool:
        return any(
            run.is_available
            and run.delivery_count >= self._throttle_from
            and (not batch.is_split or (run.last_offset >= first_offset and run.first_offset <= last_offset))
            for run in batch.runs
        )

    def _acquire_known(self, batch: InFlightBatch, first_offset: int, last_offset: int, most: int, is_throttled: bool) -> None:
        """Acquire the available records of a batch in flight."""
        has_record_limit = self._request.has_record_limit
        is_whole = batch.first_offset >= first_offset and batch.last_offset <= last_offset
        size = batch.last_offset - batch.first_offset + 1
        if batch.is_split or not is_whole or is_throttled or (has_record_limit and size > most):
            if not batch.is_split and not batch.runs[0].is_available:
                return
            batch.is_split = True
            self._acquire_part(batch, first_offset, last_offset, most if has_record_limit else size)
        elif batch.runs[0].is_available:
            self._give(batch.runs[0])

    def _acquire_part(self, batch: InFlightBatch, first_offset: int, last_offset: int, most: int) -> None:
        """Acquire records one by one: at most ``most``, fewer if some of them are throttled."""
        limit = self._limits.delivery_count_limit
        size = batch.last_offset - batch.first_offset + 1
        taken = 0
        throttled_most = -1
        place = len(self.acquired)
        for run in batch.between(first_offset, last_offset):
            if not run.is_available:
                continue
            is_last_attempt = limit > _MIN_THROTTLED_DELIVERIES and run.delivery_count == limit - 1
            if is_last_attempt and taken:
                break
            if run.delivery_count >= self._throttle_from and throttled_most < 0:
                throttled_most = max(1, size >> (run.delivery_count - self._throttle_from + 1))
            take = 1 if is_last_attempt else min(run.last_offset - run.first_offset + 1, most - taken)
            if taken < throttled_most:
                take = min(take, throttled_most - taken)
            if take < run.last_offset - run.first_offset + 1:
                batch.split(run, run.first_offset + take)
            self._give(run, place)
            taken += take
            if is_last_attempt or taken in {most, throttled_most}:
                break

    def _give(self, run: InFlightState, place: int | None = None) -> None:
        """Acquire a run. From ``place`` on, neighbours with the same delivery count are told as one."""
        run.acquire(self._request.member_id, self._request.lock_deadline_ms)
        self.count += run.last_offset - run.first_offset + 1
        acquired = self.acquired
        if place is not None and len(acquired) > place:
            last = acquired[-1]
            if last.last_offset + 1 == run.first_offset and last.delivery_count == run.delivery_count:
                acquired[-1] = last._replace(last_offset=run.last_offset)
                return
        acquired.append(AcquiredRecords(run.first_offset, run.last_offset, run.delivery_count))

    # ------------------------------------------------------------------------------------------------------ new records

    def _acquire_new(self, first_offset: int, last_offset: int, most: int) -> None:
        """Acquire records that are in no batch yet, up to the end of the record batch in which the last of ``most`` is."""
        window = self._window
        if not window.batches and window.end_offset > first_offset:
            first_offset = window.end_offset
        # The log may begin within a record batch.
        first_offset = max(first_offset, window.start_offset)
        if most < last_offset - first_offset + 1:
            wanted = self._end_of_batch(first_offset + most - 1)
            last_offset = min(wanted, last_offset) if window.open_gap is not None else wanted
        if last_offset < first_offset:
            return
        if self._request.has_record_limit:
            given = self._add_limited(first_offset, last_offset, min(last_offset, first_offset + most - 1))
        else:
            given = self._add_in_pieces(first_offset, last_offset)
        if window.batches[0].first_offset == first_offset:
            window.start_offset = first_offset
        window.end_offset = max(window.end_offset, last_offset)
        window.note_acquired(given + 1)

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the record batch that has ``offset``; ``offset`` if none has."""
        for batch in self._batches:
            if batch.base_offset <= offset <= batch.last_offset:
                return batch.last_offset
        return offset

    def _add_limited(self, first_offset: int, last_offset: int, last_given: int) -> int:
        """Add one batch, and give the first records of it. The others are available, and were never delivered."""
        run = InFlightState(first_offset, last_given, RecordState.AVAILABLE, 0)
        batch = InFlightBatch([run])
        if last_given < last_offset:
            batch = InFlightBatch([run, InFlightState(last_given + 1, last_offset, RecordState.AVAILABLE, 0)], is_split=True)
            self._window.note_available(last_given + 1)
        self._window.insert(batch)
        self._give(run)
        return last_given

    def _add_in_pieces(self, first_offset: int, last_offset: int) -> int:
        """Add batches that begin where a record batch does, each with ``batch_size`` records or more. Give all of them."""
        begins = [first_offset]
        # A batch without records would take the place of one with records: Kafka's answer to a size of 0 names one.
        batch_size = max(self._request.batch_size, 1)
        if last_offset - first_offset + 1 > batch_size:
            for batch in self._batches:
                if batch.base_offset > last_offset:
                    break
                if batch.base_offset - begins[-1] >= batch_size:
                    begins.append(batch.base_offset)
        for begin, following in zip(begins, [*begins[1:], last_offset + 1], strict=True):
            run = InFlightState(begin, following - 1, RecordState.AVAILABLE, 0)
            self._window.insert(InFlightBatch([run]))
            self._give(run)
        return last_offset


# --------------------------------------------------------------------------------------------------- aborted transactions


def withdraw_aborted(
    window: InFlightWindow,
    acquired: list[AcquiredRecords],
    batches: Sequence[ReadBatch],
    aborted: Iterable[tuple[int, int]],
) -> list[AcquiredRecords]:
    """Archive acquired records of aborted transactions, and return the others.

    ``aborted`` has the (producer id, first offset) of each aborted transaction that the batches may have records of.
    """
    for batch in _aborted_batches(batches, aborted):
        known = window.batches[max(window.floor_index(batch.base_offset), 0) :]
        for run in window.archive(known, batch.base_offset, batch.last_offset, RecordState.ACQUIRED):
            window.count_complete(run)
        acquired = [rest for records in acquired for rest in _without(records, batch)]
    return acquired


def _aborted_batches(batches: Sequence[ReadBatch], aborted: Iterable[tuple[int, int]]) -> list[ReadBatch]:
    waiting = sorted((first_offset, producer_id) for producer_id, first_offset in aborted)
    aborting: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[0][0] <= batch.last_offset:
            aborting.add(waiting.pop(0)[1])
        if batch.is_abort:
            aborting.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborting:
            found.append(batch)
    return found


def _without(records: AcquiredRecords, batch: ReadBatch) -> list[AcquiredRecords]:
    """Return the records that are not in ``batch``."""
    if records.last_offset < batch.base_offset or records.first_offset > batch.last_offset:
        return [records]
    rest = []
    if records.first_offset < batch.base_offset:
        rest.append(records._replace(last_offset=batch.base_offset - 1))
    if records.last_offset > batch.last_offset:
        rest.append(records._replace(first_offset=batch.last_offset + 1))
    return rest
