"""Snapshots of a partition's producers, in Kafka's format: their state as of an offset.

    <offset, 20 digits>.snapshot
        int16   version, 1
        uint32  CRC-32C of all that follows
        int32   count, then for each producer
            int64 producer id, int16 epoch, int32 last sequence, int64 last offset, int32 last offset delta,
            int64 timestamp in ms, int32 coordinator epoch, int64 first offset of the open transaction

Only one of a producer's last batches is kept; -1 stands for a missing value. A snapshot is taken when a segment begins, at its
base offset, and at a clean stop, at the log end offset. Without a snapshot the producers are read from the log, which takes time.
"""

from collections.abc import Iterable
from struct import Struct, error

from odradek.protocol.record_batch import crc32c
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.producer_state import AppendedBatch, Producer, ProducerStates
from odradek.storage.recovery.recovery import Warn

SNAPSHOT_SUFFIX = ".snapshot"
_VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_SEQUENCE_MASK = 0x7FFFFFFF
_OFFSET_DIGITS = 20


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
        stems = [name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
        self.offsets = sorted(int(stem) for stem in stems if len(stem) == _OFFSET_DIGITS and stem.isdecimal())
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
