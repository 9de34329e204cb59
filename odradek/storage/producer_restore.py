"""Restoring a partition's producers and transactions from a snapshot and the batches behind it.

After a clean stop there is a snapshot at the log end offset. After any other stop the last snapshot below the recovery point is
used, and the log is read from there on, header by header and marker by marker. On the way the indexes of aborted transactions are
rewritten, since a marker may be in the log and its entry not in the index. Without a snapshot the whole log is read.

A snapshot has one batch of each producer; a retry may repeat any of the last five. The others are looked up in the last part of
the log in front of the snapshot. Kafka knows the one, and answers the retry of an older batch as out of order.
"""

from bisect import bisect_right
from collections.abc import Sequence

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import BatchHeader
from odradek.storage.batch_scan import iter_headers
from odradek.storage.control_batches import record_markers
from odradek.storage.errors import LogCorrupt
from odradek.storage.producer_snapshot import ProducerSnapshots
from odradek.storage.producer_state import ProducerStates
from odradek.storage.segment import Segment
from odradek.storage.transaction_index import AbortedTransaction

_TAIL_BYTES = 256 * 1024


def restore(
    segments: Sequence[Segment],
    snapshots: ProducerSnapshots,
    log_start_offset: int,
    trusted_offset: int,
    end_offset: int,
    *,
    expired_before_ms: int,
    is_compacted: bool,
) -> ProducerStates:
    """The producers as of ``end_offset``, behind which no batch has a producer.

    A snapshot that contradicts the log is ignored; a producer without a batch since ``expired_before_ms`` may be missing there.
    Snapshots and indexes are trusted up to ``trusted_offset``. Raises LogCorrupt, OSError.
    """
    for offset in reversed(snapshots.offsets[:]):
        if log_start_offset <= offset <= trusted_offset:
            producers = snapshots.load(offset)
            has_all = not is_compacted and log_start_offset == 0
            if producers is not None and _complete_batches(
                segments, producers, offset, expired_before_ms=expired_before_ms, has_all=has_all
            ):
                break
            if producers is not None:
                snapshots.ignore(offset, "its producers are not those of the log")
    else:
        producers, offset = ProducerStates(), log_start_offset
    if offset < end_offset:
        for segment in _segments_from(segments, offset):
            _replay(segment, producers, offset)
    return producers


def _segments_from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """The segment with ``offset`` and those behind it."""
    return segments[max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0) :]


def _replay(segment: Segment, producers: ProducerStates, start_offset: int) -> None:
    """Replay ``segment`` from ``start_offset`` on, and rewrite its index of aborted transactions from there."""
    aborted: list[AbortedTransaction] = []
    position = segment.offset_index.position_before(start_offset)
    for place, header in iter_headers(segment.file, position, segment.size):
        if header.producer_id < 0 or header.last_offset < start_offset:
            continue
        if header.is_control and not header.record_count:
            producers.note_epoch(header.producer_id, header.producer_epoch, header.max_timestamp)
        elif header.is_control:
            aborted += _replayed_markers(segment, place, header, producers)
        else:
            producers.record(header, header.base_offset, header.max_timestamp)
    if aborted or segment.transaction_index is not None:
        index = segment.transaction_index or segment.open_transaction_index(0)
        index.rewrite_from(segment.base_offset, start_offset, aborted)
    segment.release_file()


def _replayed_markers(
    segment: Segment, position: int, header: BatchHeader, producers: ProducerStates
) -> list[AbortedTransaction]:
    """Note the markers of the control batch at ``position``; returns the transactions that they abort. Raises LogCorrupt."""
    try:
        return record_markers(header, segment.file.pread(header.size_bytes, position), producers)
    except MalformedMessage as error:
        raise LogCorrupt(f"{segment.path}, position {position}: {error.reason}") from error


def _complete_batches(
    segments: Sequence[Segment], producers: ProducerStates, offset: int, *, expired_before_ms: int, has_all: bool
) -> bool:
    """Add to producers as of ``offset`` the batches before their last one that are in the log's last part.

    False if these batches contradict the producers: they are another log's. ``has_all``: no record was ever removed.
    """
    below = [segment for segment in segments if segment.base_offset < offset]
    if not below:
        return True
    segment = below[-1]
    at_offset = segment.find(offset)
    end = segment.size if at_offset is None else at_offset[0]
    start = 0
    # Without producers a look at the last batches is enough.
    tail_bytes = _TAIL_BYTES if producers.by_id else 0
    if end > tail_bytes:
        entry = segment.offset_index.first_from_position(end - tail_bytes)
        start = entry[1] if entry and entry[1] < end else segment.offset_index.position_before(offset - 1)
    tail = _Tail(segment, start, end)
    segment.release_file()
    if tail.contradicts(producers, offset, expired_before_ms=expired_before_ms, is_whole=has_all and tail.first_offset == 0):
        return False
    for producer_id, producer in producers.by_id.items():
        found = tail.producers.by_id.get(producer_id)
        if found is None or found.epoch != producer.epoch or not producer.batches:
            continue
        if found.batches[-1].last_offset == producer.batches[-1].last_offset:
            producer.batches = found.batches
    return True


class _Tail:
    """The last batches of a log: their producers, and where each ends."""

    def __init__(self, segment: Segment, start: int, end: int) -> None:
        self.producers = ProducerStates()
        self.first_offset = -1
        self._ids: set[int] = set()
        self._ends: set[tuple[int, int]] = set()
        for _, header in iter_headers(segment.file, start, end):
            if self.first_offset < 0:
                self.first_offset = header.base_offset
            self._ids.add(header.producer_id)
            if header.producer_id >= 0 and not header.is_control:
                self.producers.record(header, header.base_offset, header.max_timestamp)
                self._ends.add((header.producer_id, header.last_offset))

    def contradicts(self, snapshot: ProducerStates, offset: int, *, expired_before_ms: int, is_whole: bool) -> bool:
        """Whether ``snapshot``, as of ``offset``, cannot be of this log. ``is_whole``: there are no batches in front of these."""
        if is_whole and not snapshot.by_id.keys() <= self._ids:
            return True
        for producer_id, seen in self.producers.by_id.items():
            if producer_id not in snapshot.by_id and seen.last_timestamp >= expired_before_ms:
                return True
        for producer_id, producer in snapshot.by_id.items():
            last_offset = producer.batches[-1].last_offset if producer.batches else -1
            is_missing = 0 <= self.first_offset <= last_offset and (producer_id, last_offset) not in self._ends
            if is_missing or last_offset >= offset:
                return True
        return False
