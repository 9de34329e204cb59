"""Counts the records of a log by the headers of its batches, on this broker's own replica, without reading the records.

Markers do not count, and with ``aborted`` neither do the records of aborted transactions. Only a batch that an offset cuts is
read. The work is done in turns of a millisecond or so, and goes on where the last count has ended: what lies below the last
stable offset does not change, unless the log is compacted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.record_batch import MAGIC
from odradek.protocol.records import read_records
from odradek.storage.errors import LogCorrupt
from odradek.storage.log.segment import iter_headers

if TYPE_CHECKING:
    from odradek.protocol.record_batch import BatchHeader
    from odradek.storage.filesystem import File
    from odradek.storage.log.log import Log
    from odradek.storage.log.transaction_index import AbortedTransaction

# Headers that are read at once.
_AT_ONCE: Final = 400
_MOST_KEPT: Final = 5_000


class Count(NamedTuple):
    """The records from an offset up to ``up_to``. ``is_complete``: up to the offset that was asked for.

    ``batches`` is how many were looked at for it; earlier counts are remembered.
    """

    records: int
    up_to: int
    is_complete: bool
    batches: int


@dataclass(slots=True)
class _Kept:
    """A count below the last stable offset, and the state of the log that it holds for."""

    log_start_offset: int
    cleaned_offset: int | None
    up_to: int
    records: int


class _Batch(NamedTuple):
    position: int
    header: BatchHeader
    file: File


class RecordCounts:
    """The counts of a broker's logs. Loop thread only."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Log, int, bool], _Kept] = {}

    async def count(
        self, log: Log, offset: int, end_offset: int, stable_offset: int, *, most_batches: int, markers: bool = False
    ) -> Count:
        """Count from ``offset`` up to ``end_offset``, of at most so many batches. With ``markers``, count everything.

        ``stable_offset`` is the last stable offset. A log that cannot be read is counted up to there.
        """
        offset = max(offset, log.log_start_offset)
        kept = self._of(log, offset, markers=markers)
        up_to, records, batches = kept.up_to, kept.records, 0
        while up_to < end_offset and batches < most_batches:
            try:
                found, next_offset = _batches(log, up_to, end_offset)
                records_here = _records(log, found, (up_to, end_offset), markers=markers)
            except (KafkaError, LogCorrupt, MalformedMessage, OSError):
                break
            up_to, records, batches = min(next_offset, end_offset), records + records_here, batches + len(found)
            if up_to <= stable_offset:
                kept.up_to, kept.records = up_to, records
            await asyncio.sleep(0)
        return Count(records, up_to, up_to >= end_offset, batches)

    def _of(self, log: Log, offset: int, *, markers: bool) -> _Kept:
        key = log, offset, markers
        kept = self._kept.pop(key, None)
        if kept is None or kept.log_start_offset != log.log_start_offset or kept.cleaned_offset != log.cleaned_offset:
            kept = _Kept(log.log_start_offset, log.cleaned_offset, offset, 0)
        if len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        # The one used last is last.
        self._kept[key] = kept
        return kept


def _batches(log: Log, offset: int, end_offset: int) -> tuple[list[_Batch], int]:
    """Return some batches from ``offset`` on, all of one segment, and the offset after them."""
    for segment, end in log.segments.with_ends(log.log_end_offset):
        place = segment.find(offset) if end > offset else None
        if place is None:
            continue
        file = segment.file
        headers = islice(iter_headers(file, place[0], segment.size), _AT_ONCE)
        found = [_Batch(position, header, file) for position, header in headers if header.base_offset < end_offset]
        return found, found[-1].header.next_offset if found else end_offset
    return [], end_offset


def _records(log: Log, batches: list[_Batch], bounds: tuple[int, int], *, markers: bool) -> int:
    offset, end_offset = bounds
    if not batches:
        return 0
    last = batches[-1].header.last_offset
    aborted: dict[int, list[AbortedTransaction]] = {}
    if not markers:
        for each in log.segments.aborted_transactions(offset, last + 1):
            aborted.setdefault(each.producer_id, []).append(each)
    records = 0
    for batch in batches:
        header = batch.header
        if not markers and (header.is_control or _is_aborted(header, aborted)):
            continue
        if header.base_offset >= offset and header.last_offset < end_offset:
            # A message of an older format has no count. A clean may leave an empty batch.
            records += header.record_count if header.magic == MAGIC else 1
        else:
            records += _cut(batch, offset, end_offset)
    return records


def _is_aborted(header: BatchHeader, aborted: dict[int, list[AbortedTransaction]]) -> bool:
    transactions = aborted.get(header.producer_id) if header.is_transactional else None
    return transactions is not None and any(each.first_offset <= header.base_offset <= each.last_offset for each in transactions)


def _cut(batch: _Batch, offset: int, end_offset: int) -> int:
    """Return how many records of a batch lie between the offsets."""
    header = batch.header
    first, last = max(header.base_offset, offset), min(header.last_offset, end_offset - 1)
    if header.record_count == header.last_offset - header.base_offset + 1:
        return last - first + 1
    data = batch.file.pread(header.size_bytes, batch.position)
    return sum(first <= record.offset <= last for record in read_records(data))
