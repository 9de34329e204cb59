"""A partition's producers and transactions: their snapshots, and how they are restored from snapshot and log.

Snapshots of a partition's producers, in Kafka's format: their state as of an offset.

    <offset, 20 digits>.snapshot
        int16   version, 1
        uint32  CRC-32C of all that follows
        int32   count, then for each producer
            int64 producer id, int16 epoch, int32 last sequence, int64 last offset, int32 last offset delta,
            int64 timestamp in ms, int32 coordinator epoch, int64 first offset of the open transaction

Only one of a producer's last batches is kept; -1 stands for a missing value. A snapshot is taken when a segment begins, at its
base offset, and at a clean stop, at the log end offset. Without a snapshot the producers are read from the log, which takes
time.

Restores a partition's producers and transactions from a snapshot and the batches after it.

After a clean stop, there is a snapshot at the log end offset. After any other stop, the last snapshot below the recovery point
is used, and the log is read from there on, header by header and marker by marker. This also rewrites the indexes of aborted
transactions, as a marker may be in the log but not in its index. Without a snapshot, the whole log is read.

A snapshot has one batch of each producer, but a retry may repeat any of the last five. The other four are looked up in the last
part of the log before the snapshot, across segments. Kafka only knows the one, and answers the retry of an older batch as out
of order.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from struct import Struct, error

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import BatchHeader, crc32c
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.control_batches import record_markers
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.producer_state import BATCHES_KEPT, AppendedBatch, Producer, ProducerStates
from odradek.storage.log.segment import Segment, iter_headers, offsets_of
from odradek.storage.log.transaction_index import AbortedTransaction
from odradek.storage.recovery.recovery import Warn

SNAPSHOT_SUFFIX = ".snapshot"
_VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_SEQUENCE_MASK = 0x7FFFFFFF


def encode(producers: ProducerStates) -> bytes:
    """Return the file's bytes."""
    body = bytearray(_COUNT.pack(len(producers.by_id)))
    for producer_id, producer in producers.by_id.items():
        last_offset, delta = -1, 0
        if producer.batches:
            last = producer.batches[-1]
            last_offset, delta = last.last_offset, last.last_offset - last.first_offset
        body += _ENTRY.pack(
            producer_id,
            producer.epoch,
            producer.last_sequence,
            last_offset,
            delta,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.transaction_start,
        )
    return _HEAD.pack(_VERSION, crc32c(body, 0)) + bytes(body)


def decode(data: bytes) -> ProducerStates:
    """Decode a file. Raises ValueError unless ``data`` is a complete snapshot of version 1."""
    try:
        version, crc = _HEAD.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEAD.size)
        entries = list(_ENTRY.iter_unpack(data[_HEAD.size + _COUNT.size :]))
    except error as problem:
        raise ValueError(f"{len(data)} bytes are not a snapshot") from problem
    if version != _VERSION or crc != crc32c(data[_HEAD.size :], 0) or count != len(entries):
        raise ValueError(f"a snapshot of version {version} with a wrong CRC or count")
    producers = ProducerStates()
    transactions = []
    for producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction_start in entries:
        producer = producers.by_id[producer_id] = Producer(epoch)
        producer.last_sequence = last_sequence
        producer.last_timestamp = timestamp
        producer.coordinator_epoch = coordinator_epoch
        producer.transaction_start = transaction_start
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & _SEQUENCE_MASK if last_sequence >= 0 else -1
            producer.batches.append(AppendedBatch(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))
        if transaction_start >= 0:
            transactions.append((transaction_start, producer_id))
    producers.open_transactions = dict(sorted(transactions))
    return producers


class ProducerSnapshots:
    """The snapshot files of one partition; ``offsets`` ascend."""

    __slots__ = ("_directory", "_file_system", "_warn", "offsets")

    def __init__(self, file_system: FileSystem, directory: str, names: Iterable[str], warn: Warn) -> None:
        """Find the snapshots among the file ``names`` in ``directory``."""
        self.offsets = offsets_of(names, SNAPSHOT_SUFFIX)
        self._file_system = file_system
        self._directory = directory
        self._warn = warn

    def take(self, producers: ProducerStates, offset: int) -> None:
        """Write a snapshot as of ``offset``, which is above all of ``offsets``. Raises OSError.

        Not synced: after a power loss it may be missing, or have a wrong CRC.
        """
        self._file_system.write_atomic(self._path(offset), encode(producers), durable=False)
        self.offsets.append(offset)

    def load(self, offset: int) -> ProducerStates | None:
        """Return the snapshot at ``offset``. If it is unreadable, remove its file and return None. Raises OSError."""
        path = self._path(offset)
        try:
            return decode(self._file_system.read_bytes(path))
        except (FileNotFoundError, ValueError) as problem:
            self.ignore(offset, str(problem))
            return None

    def ignore(self, offset: int, reason: str) -> None:
        """Remove the snapshot at ``offset``, with a warning. Raises OSError."""
        self._warn("producer snapshot ignored", path=self._path(offset), reason=reason)
        self._remove(offset)

    def keep_only(self, segment_offsets: Iterable[int], start_offset: int, end_offset: int) -> None:
        """Keep the snapshots within the log: those at ``segment_offsets`` and the last one. Raises OSError."""
        inside = [offset for offset in self.offsets if start_offset <= offset <= end_offset]
        kept = {*segment_offsets, *inside[-1:]}.intersection(inside)
        for offset in self.offsets[:]:
            if offset not in kept:
                self._remove(offset)

    def forget_below(self, offset: int) -> None:
        """Remove snapshots below ``offset``. Raises OSError."""
        for known in self.offsets[:]:
            if known < offset:
                self._remove(known)

    def forget(self, offsets: Iterable[int]) -> None:
        """Remove the snapshots at ``offsets``; missing ones are skipped. Raises OSError."""
        for offset in offsets:
            if offset in self.offsets:
                self._remove(offset)

    def _remove(self, offset: int) -> None:
        self._file_system.remove(self._path(offset))
        self.offsets.remove(offset)

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


_TAIL_BYTES = 256 * 1024


def restore(
    segments: Sequence[Segment],
    snapshots: ProducerSnapshots,
    log_start_offset: int,
    trusted_offset: int,
    end_offset: int,
    config: LogConfig,
    now_ms: int,
) -> ProducerStates:
    """Return the producers as of ``end_offset`` that are not idle; no producer's batch lies after it.

    A snapshot that contradicts the log is ignored; an idle producer may be missing there. Snapshots and indexes are trusted up to
    ``trusted_offset``. Raises LogCorrupt, OSError.
    """
    expired_before_ms = now_ms - config.producer_id_expiration_ms
    for offset in reversed(snapshots.offsets[:]):
        if log_start_offset <= offset <= trusted_offset:
            producers = snapshots.load(offset)
            has_all = not config.is_compacted and log_start_offset == 0
            if producers is not None and _complete_batches(
                segments, producers, offset, expired_before_ms=expired_before_ms, has_all=has_all
            ):
                break
            if producers is not None:
                snapshots.ignore(offset, "its producers do not match the log")
    else:
        producers, offset = ProducerStates(), log_start_offset
    if offset < end_offset:
        for segment in _segments_from(segments, offset):
            _replay(segment, producers, offset)
    producers.expire(now_ms, config.producer_id_expiration_ms)
    return producers


def _segments_from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """Return the segment with ``offset`` and the later ones."""
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
    """Note the markers of the control batch at ``position``. Return the transactions they abort. Raises LogCorrupt."""
    try:
        return record_markers(header, segment.file.pread(header.size_bytes, position), producers)
    except MalformedMessage as error:
        raise LogCorrupt(f"{segment.path}, position {position}: {error.reason}") from error


def _complete_batches(
    segments: Sequence[Segment], producers: ProducerStates, offset: int, *, expired_before_ms: int, has_all: bool
) -> bool:
    """Add the batches before each producer's last one, as found in the log's last part before ``offset``.

    Return False if these batches contradict the producers, which then belong to another log. ``has_all``: no record was ever
    removed.
    """
    below = [segment for segment in segments if segment.base_offset < offset]
    if not below:
        return True
    segment = below[-1]
    at_offset = segment.find(offset)
    end = segment.size if at_offset is None else at_offset[0]
    # Without producers, checking the last batches is enough.
    tail_bytes = _TAIL_BYTES if producers.by_id else 0
    start = _last_part(segment, end, tail_bytes, offset)
    tail = _Tail(segment, start, end)
    segment.release_file()
    if tail.contradicts(producers, offset, expired_before_ms=expired_before_ms, is_whole=has_all and tail.first_offset == 0):
        return False
    found = tail.producers
    if start == 0 and any(_lacks_batches(found.by_id.get(key), producer) for key, producer in producers.by_id.items()):
        found = _with_earlier(below, tail, tail_bytes - end)
    for producer_id, producer in producers.by_id.items():
        seen = found.by_id.get(producer_id)
        if seen is None or seen.epoch != producer.epoch or not producer.batches:
            continue
        if seen.batches[-1].last_offset == producer.batches[-1].last_offset:
            producer.batches = seen.batches
    return True


def _last_part(segment: Segment, end: int, size_bytes: int, offset: int) -> int:
    """Return the position of a batch some ``size_bytes`` before ``end``, or 0. ``offset`` is the offset at ``end``."""
    if end <= size_bytes:
        return 0
    entry = segment.offset_index.first_from_position(end - size_bytes)
    return entry[1] if entry and entry[1] < end else segment.offset_index.position_before(offset - 1)


def _lacks_batches(found: Producer | None, producer: Producer) -> bool:
    """Return whether a retry may repeat an unknown batch: fewer are found than kept, none the first of its epoch."""
    if not producer.batches or (found is not None and len(found.batches) >= BATCHES_KEPT):
        return False
    return found is None or all(batch.first_sequence > 0 for batch in found.batches)


def _with_earlier(segments: Sequence[Segment], tail: "_Tail", size_bytes: int) -> ProducerStates:
    """Return the producers of ``tail``, in the last segment, and of the ``size_bytes`` before it.

    The search ends at unreadable bytes.
    """
    parts = [tail.headers]
    for segment, following in zip(segments[-2::-1], segments[:0:-1], strict=True):
        if size_bytes <= 0:
            break
        try:
            start = _last_part(segment, segment.size, size_bytes, following.base_offset)
            parts.append([header for _, header in iter_headers(segment.file, start, segment.size)])
        except (LogCorrupt, OSError):
            break
        finally:
            segment.release_file()
        size_bytes -= segment.size
    producers = ProducerStates()
    for part in reversed(parts):
        _record_all(part, producers)
    return producers


def _record_all(headers: Iterable[BatchHeader], producers: ProducerStates) -> None:
    for header in headers:
        if header.producer_id >= 0 and not header.is_control:
            producers.record(header, header.base_offset, header.max_timestamp)


class _Tail:
    """The last batches of a segment: their producers, and the end of each batch."""

    def __init__(self, segment: Segment, start: int, end: int) -> None:
        self.headers = [header for _, header in iter_headers(segment.file, start, end)]
        self.first_offset = self.headers[0].base_offset if self.headers else -1
        self.producers = ProducerStates()
        _record_all(self.headers, self.producers)
        self._ids = {header.producer_id for header in self.headers}
        self._ends = {(header.producer_id, header.last_offset) for header in self.headers if not header.is_control}

    def contradicts(self, snapshot: ProducerStates, offset: int, *, expired_before_ms: int, is_whole: bool) -> bool:
        """Return whether ``snapshot``, as of ``offset``, contradicts this log. ``is_whole``: no batch precedes these."""
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
