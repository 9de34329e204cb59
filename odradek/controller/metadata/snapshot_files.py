"""Snapshots of the metadata as files beside the metadata log (KIP-630).

    00000000000000000123-0000000001.checkpoint    all metadata as of offset 123, whose last record has leader epoch 1

A file is record batches with offsets from 0 on: a control batch with the header, the records of the image, a control batch with
the footer. It is written as ``<name>.checkpoint.part``, synced and renamed, and its name is synced. So a file of that name is
complete. The next start removes the parts that a stop left behind.

The snapshot of offset 0, epoch 0 is written when the directory is formatted. It has the records that a new log begins with, and
the quorum's voters.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.metadata_records import MetadataRecord, encode
from odradek.protocol.quorum_records import SNAPSHOT_FOOTER, control_type, footer_batch, header_batch, last_contained_ms
from odradek.protocol.record_batch import ensure_intact, iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.filesystem import FileSystem

SUFFIX = ".checkpoint"
PART_SUFFIX = ".part"
# Kafka's limit.
_RECORDS_A_BATCH = 1024
_HEADER_BYTES = 4096


class SnapshotId(NamedTuple):
    """The end offset of a snapshot, and the leader epoch of the last record before it."""

    end_offset: int
    epoch: int

    @property
    def name(self) -> str:
        """Return the file's name."""
        return f"{self.end_offset:020}-{self.epoch:010}{SUFFIX}"


BOOTSTRAP: Final = SnapshotId(0, 0)


class SnapshotFiles:
    """The snapshots of one metadata log, in its ``directory``. ``write`` may be called in any thread."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system = file_system
        self._directory = directory
        self.ids: list[SnapshotId] = []

    def recover(self) -> None:
        """Find the existing snapshots, and remove parts. Raises OSError."""
        names = self._file_system.list_dir(self._directory)
        for name in names:
            if name.endswith((SUFFIX + PART_SUFFIX, SUFFIX + ".deleted")):
                self._file_system.remove(f"{self._directory}/{name}")
        self.ids = sorted(found for name in names if (found := _parsed(name)) is not None)

    def path(self, snapshot: SnapshotId) -> str:
        """Return the path of a snapshot's file."""
        return f"{self._directory}/{snapshot.name}"

    def size(self, snapshot: SnapshotId) -> int:
        """Return the size in bytes. Raises OSError."""
        return self._file_system.size(self.path(snapshot))

    def read_bytes(self, snapshot: SnapshotId, position: int, max_bytes: int, suffix: str = "") -> bytes:
        """Return at most ``max_bytes`` from ``position`` on. Raises OSError."""
        file = self._file_system.open(self.path(snapshot) + suffix)
        try:
            return file.pread(max_bytes, position)
        finally:
            file.close()

    def last_contained_ms(self, snapshot: SnapshotId, suffix: str = "") -> int:
        """Return the append time of the last record it contains. Raises MalformedMessage, OSError."""
        return last_contained_ms(next(read_records(self.read_bytes(snapshot, 0, _HEADER_BYTES, suffix))))

    def write(
        self,
        snapshot: SnapshotId,
        records: Iterable[MetadataRecord],
        quorum: Sequence[tuple[bytes, bytes]],
        *,
        contained_ms: int,
        now_ms: int,
    ) -> None:
        """Write a snapshot of ``records``, carrying on the control records ``quorum``. Raises OSError."""
        path = self.path(snapshot)
        part = path + PART_SUFFIX
        with suppress(FileNotFoundError):
            self._file_system.remove(part)
        file = self._file_system.open(part, create=True)
        try:
            file.append([header_batch(contained_ms, now_ms, snapshot.epoch, quorum)])
            offset = 1 + len(quorum)
            left = iter(records)
            while values := [Record(timestamp=now_ms, value=encode(record)) for record in islice(left, _RECORDS_A_BATCH)]:
                file.append([build_batch(values, base_offset=offset, leader_epoch=snapshot.epoch)])
                offset += len(values)
            file.append([footer_batch(offset, now_ms, snapshot.epoch)])
            file.sync()
        finally:
            file.close()
        self._file_system.rename(part, path)
        self._file_system.sync_dir(self._directory)

    def accept(self, snapshot: SnapshotId) -> None:
        """Rename a part, fetched and synced, to its final name. Raises OSError."""
        path = self.path(snapshot)
        self._file_system.rename(path + PART_SUFFIX, path)
        self._file_system.sync_dir(self._directory)
        self.add(snapshot)

    def add(self, snapshot: SnapshotId) -> None:
        """Add a snapshot that has been written or fetched."""
        self.ids = sorted({*self.ids, snapshot})

    def read(self, snapshot: SnapshotId, suffix: str = "") -> Iterator[tuple[bool, list[Record]]]:
        """Yield (is control batch, records) of each batch. Raises MalformedMessage if it is damaged, OSError."""
        data = self._file_system.read_bytes(self.path(snapshot) + suffix)
        end = 0
        last: Record | None = None
        for position, header in iter_batches(data):
            try:
                ensure_intact(header, data, position)
            except KafkaError as error:
                raise MalformedMessage(error.reason) from error
            records = list(read_records(data, position))
            yield header.is_control, records
            last = records[-1] if header.is_control and records else None
            end = position + header.size_bytes
        if end != len(data) or last is None or control_type(last) != SNAPSHOT_FOOTER:
            raise MalformedMessage(f"the snapshot {snapshot.name} does not end with its footer")

    def remove_below(self, end_offset: int) -> None:
        """Remove the snapshots that end below ``end_offset``. Raises OSError."""
        while self.ids and self.ids[0].end_offset < end_offset:
            self._file_system.remove(self.path(self.ids[0]))
            del self.ids[0]


def _parsed(name: str) -> SnapshotId | None:
    offset, _, epoch = name.removesuffix(SUFFIX).partition("-")
    is_one = name.endswith(SUFFIX) and len(offset) == 20 and len(epoch) == 10 and (offset + epoch).isdecimal()
    return SnapshotId(int(offset), int(epoch)) if is_one else None
