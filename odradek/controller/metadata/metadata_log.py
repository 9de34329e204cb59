"""The log of the cluster's metadata: `__cluster_metadata-0/` in the data directory, in Kafka's own format.

Each operation's records form one record batch, so a torn write leaves all of it or none: the next open cuts an incomplete batch
off. An append returns once the batch is synced to disk, whatever `flush.*` says, as in Kafka's controller.

Snapshots lie beside the segments (``snapshot_files``). A start loads the newest one, then the log after it. The log starts at the
oldest snapshot that retention keeps.

Left out: elections. The leader epoch never changes, unless brokers follow (``cluster.quorum_leader``).
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import UUID

from odradek.controller.metadata.snapshot_files import BOOTSTRAP, SnapshotFiles, SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.metadata_records import (
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
    UnknownMetadataRecord,
    decode,
    encode,
)
from odradek.protocol.quorum_records import KRAFT_VERSION, KRAFT_VOTERS, Voter, control_type, voters_batch
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, build_sliced_batch, read_records
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment_files import SegmentRemoval
from odradek.storage.recovery.recovery import Warn

if TYPE_CHECKING:
    from odradek.storage.directories.data_directory import Reserve

LEADER_EPOCH = 1
MAX_BATCH_BYTES = 8 * 1024 * 1024  # as in KRaft

_READ_BYTES = 1024 * 1024
_NEWER = "a newer broker wrote it: use that broker, or a newer odradek"
# The number of records decoded at a time: half a millisecond.
_DECODED_TOGETHER = 64
_DEFAULTS = LogConfig()


class MetadataUnreadable(Exception):
    """The metadata cannot be read, so the broker must not start. The message says where, and what to do."""

    def __init__(self, path: str, offset: int, error: MalformedMessage) -> None:
        advice = "restore the data directory from a backup, or open it with the broker that wrote it"
        if isinstance(error, UnknownMetadataRecord):
            advice = _NEWER
        super().__init__(f"{path}, offset {offset}: {error.reason}; {advice}")


class UnknownFeatureLevel(MetadataUnreadable):
    """A feature is finalized at a level unknown here; ``problem`` names both."""

    def __init__(self, path: str, problem: str) -> None:
        Exception.__init__(self, f"{path}: {problem}; {_NEWER}")


class MetadataBatch(NamedTuple):
    """The records of one batch, and the offset of the first."""

    base_offset: int
    records: list[MetadataRecord]
    size_bytes: int = 0


class MetadataLog:
    """The open metadata log. ``open`` raises LogCorrupt if it cannot be trusted; the broker must not start then."""

    def __init__(self, log: Log, snapshots: SnapshotFiles) -> None:
        self.snapshots = snapshots
        # The latest control records of the quorum's version and voters, by type. Snapshots carry them on.
        self.quorum: dict[int, tuple[bytes, bytes]] = {}
        # The time of the last record.
        self.last_append_ms = 0
        # This node as the only voter of the quorum; None if another node writes the log.
        self.voter: Voter | None = None
        # The first records of a new log, besides the feature levels.
        self.bootstrap: Sequence[MetadataRecord] = ()
        # Reserved space for removing topics from a full disk.
        self.reserve: Reserve | None = None
        # True if an append or a sync has failed, after which nothing is appended.
        self.has_failed = False
        self._log = log

    @classmethod
    def open(
        cls,
        file_system: FileSystem,
        data_dir: str,
        *,
        now_ms: int,
        warn: Warn,
        config: LogConfig = _DEFAULTS,
        synced_offset: int = 0,
    ) -> Self:
        """Open or create the log in ``data_dir``, with every batch checked. ``config`` has the segment limits.

        The log must have all records below ``synced_offset``. Raises LogCorrupt, OSError; KafkaError if it cannot be synced.
        """
        # Each append flushes.
        log = open_log(
            file_system, data_dir, replace(config, flush_messages=1), synced_offset=synced_offset, now_ms=now_ms, warn=warn
        )
        # Sync the records that a killed process wrote but did not sync.
        log.flush_found(now_ms)
        snapshots = SnapshotFiles(file_system, log.directory)
        snapshots.recover()
        newest = snapshots.ids[-1].end_offset if snapshots.ids else 0
        if not log.log_start_offset <= newest <= log.log_end_offset:
            raise LogCorrupt(
                f"{log.directory}: the newest snapshot ends at offset {newest}, but the log has offsets "
                f"{log.log_start_offset} to {log.log_end_offset}: records are missing; restore the directory from a backup"
            )
        return cls(log, snapshots)

    @property
    def start_offset(self) -> int:
        """Return the first record's offset."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """Return the offset after the last record."""
        return self._log.log_end_offset

    @property
    def synced_offset(self) -> int:
        """Return the offset below which records are on disk: the end offset, unless a sync has failed."""
        return self._log.flushed_offset

    @property
    def leader_epoch(self) -> int:
        """Return the epoch of the last leader. A log of Kafka's has had elections, and epochs never go back."""
        return max(self._log.leader_epochs.latest, LEADER_EPOCH)

    @property
    def kraft_version(self) -> int:
        """Return ``kraft.version``: 0 unless a record sets it."""
        _, value = self.quorum.get(KRAFT_VERSION, (b"", b""))
        return int.from_bytes(value[2:4], "big")

    def path_at(self, offset: int) -> str:
        """Return the file that has the record at ``offset``."""
        base_offset = max(
            (segment.base_offset for segment in self._log.segments if segment.base_offset <= offset),
            default=self._log.segments.first_offset,
        )
        return f"{self._log.directory}/{base_offset:020}.log"

    @property
    def size_bytes(self) -> int:
        """Return the size of the log, without its snapshots."""
        return self._log.size_bytes

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        """Return the newest snapshot on disk. BOOTSTRAP is none: its records are in the log of whoever led first."""
        newest = self.snapshots.ids[-1] if self.snapshots.ids else BOOTSTRAP
        return None if newest == BOOTSTRAP else newest

    @property
    def next_snapshot_id(self) -> SnapshotId:
        """Return the id of a snapshot of everything in the log now."""
        return SnapshotId(self.end_offset, self.leader_epoch)

    def read_all(self) -> Iterator[MetadataBatch]:
        """Yield the log's batches from the newest snapshot on, or all without one. Raises MetadataUnreadable."""
        offset = self.snapshots.ids[-1].end_offset if self.snapshots.ids else self._log.log_start_offset
        return _batches(self.reading(offset, self.end_offset))

    def reading(self, offset: int, upper_offset: int) -> Iterator[MetadataBatch | None]:
        """Yield the batches from ``offset`` to ``upper_offset``, the end of a batch, and None where the caller may pause.

        Raises MetadataUnreadable.
        """
        while offset < upper_offset:
            log_slice = self._log.read(offset, _READ_BYTES, upper_offset=upper_offset, min_one_batch=True)
            if log_slice is None:
                return
            data = log_slice.read()
            for position, header in iter_batches(data):
                offset = header.next_offset
                self.last_append_ms = header.max_timestamp
                path = self.path_at(header.base_offset)
                try:
                    records = read_records(data, position)
                except MalformedMessage as error:
                    raise MetadataUnreadable(path, header.base_offset, error) from error
                if header.is_control:
                    self._note_quorum(path, records)
                else:
                    decoded = yield from _decoding(path, records)
                    yield MetadataBatch(header.base_offset, decoded, header.size_bytes)

    def read_snapshot(self) -> Iterator[MetadataBatch]:
        """Yield the batches of the newest snapshot, if any. Raises MetadataUnreadable, OSError.

        The quorum's records of BOOTSTRAP count. Its others are left out: the log has them, too.
        """
        if not self.snapshots.ids:
            return iter(())
        batches = _batches(self.reading_snapshot(self.snapshots.ids[-1]))
        return iter([*batches][:0]) if self.snapshots.ids[-1] == BOOTSTRAP else batches

    def reading_snapshot(self, snapshot: SnapshotId, suffix: str = "") -> Iterator[MetadataBatch | None]:
        """Yield the batches of a snapshot's file, and None where the caller may pause. Raises MetadataUnreadable, OSError."""
        path = self.snapshots.path(snapshot) + suffix
        try:
            self.last_append_ms = self.snapshots.last_contained_ms(snapshot, suffix)
            for is_control, records in self.snapshots.read(snapshot, suffix):
                if is_control:
                    self._note_quorum(path, iter(records))
                else:
                    decoded = yield from _decoding(path, iter(records))
                    yield MetadataBatch(records[0].offset, decoded)
        except MalformedMessage as error:
            raise MetadataUnreadable(path, 0, error) from error

    @property
    def snapshot_path(self) -> str:
        """Return the path of the newest snapshot."""
        return self.snapshots.path(self.snapshots.ids[-1])

    def _note_quorum(self, path: str, records: Iterator[Record]) -> None:
        try:
            for record in records:
                kind = control_type(record)
                if kind in (KRAFT_VERSION, KRAFT_VOTERS):
                    self.quorum[kind] = (record.key or b"", record.value or b"")
        except MalformedMessage as error:
            raise MetadataUnreadable(path, 0, error) from error

    def delete_before(self, snapshot: SnapshotId, *, now_ms: int) -> None:
        """Let the log begin at ``snapshot``, which is on disk. Removes older snapshots and the segments before it.

        KafkaError: KAFKA_STORAGE_ERROR. Raises OSError.
        """
        self._log.delete_records_before(snapshot.end_offset)
        # Remove the snapshots first: one that ends before the log's first record can never be loaded.
        self.snapshots.remove_below(snapshot.end_offset)
        retention = self._log.retention
        retention.removal.set_aside(self._log.directory, retention.release_old_segments(now_ms), delay_ms=0, one_by_one=True)

    def append(self, records: Sequence[MetadataRecord], *, now_ms: int) -> int:
        """Append ``records`` as one batch and sync it. Return its size in bytes.

        Raises KafkaError: MESSAGE_TOO_LARGE if they exceed MAX_BATCH_BYTES, KAFKA_STORAGE_ERROR if the disk fails. After a failed
        sync it is unknown whether the batch is on disk, so nothing more is appended until the log is opened again. A batch that
        did not fit on the disk is not in the log.
        """
        self._ensure_writable()
        return self._append(build_batch([Record(timestamp=now_ms, value=encode(record)) for record in records]), records, now_ms)

    def append_in_slices(self, records: Sequence[MetadataRecord], *, now_ms: int) -> Generator[None, None, int]:
        """Append many records, in a generator that can be abandoned before it appends. Otherwise like ``append``."""
        self._ensure_writable()
        batch = yield from build_sliced_batch(records, encode, now_ms)
        self._ensure_writable()
        return self._append(batch, records, now_ms)

    def _ensure_writable(self) -> None:
        if self.has_failed:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log failed earlier; metadata is read-only until a restart"
            )

    def _append(self, batch: bytes, records: Sequence[MetadataRecord], now_ms: int) -> int:
        end_offset = self._log.log_end_offset
        # Records that need space wait for room. Removals may spend the reserve, as they free space.
        may_spend = not any(isinstance(record, TopicRecord | PartitionRecord) for record in records)

        def write() -> None:
            if self._log.log_end_offset == end_offset and not self._log.has_lost_sync:
                self._log.append(batch, leader_epoch=self.leader_epoch, now_ms=now_ms)

        try:
            if may_spend and self.reserve is not None:
                self.reserve.spend(write)
            else:
                write()
        except KafkaError:
            self.has_failed = self._log.has_lost_sync or self._log.log_end_offset != end_offset
            raise
        self.last_append_ms = now_ms
        return len(batch)

    def append_voters(self, *, now_ms: int) -> int:
        """Record the log's only voter (``kraft.version`` 1, KIP-853). Return the batch's size in bytes.

        KafkaError: INVALID_UPDATE_VERSION if this node is not a voter, KAFKA_STORAGE_ERROR as for ``append``.
        """
        if self.voter is None:
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, "this node is not a voter of the quorum")
        self._ensure_writable()
        end_offset = self._log.log_end_offset
        batch = voters_batch(end_offset, now_ms, self.leader_epoch, self.voter)
        try:
            self._log.append_as_follower(batch, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except KafkaError:
            self.has_failed = self._log.has_lost_sync or self._log.log_end_offset != end_offset
            raise
        self._note_quorum(self.path_at(end_offset), read_records(batch))
        self.last_append_ms = now_ms
        return len(batch)

    def close(self, *, now_ms: int) -> None:
        """Close the log cleanly; nothing is left to sync."""
        if self.reserve is None:
            self._log.close(clean=not self.has_failed, now_ms=now_ms)
        else:
            self.reserve.spend(lambda: self._log.close(clean=not self.has_failed, now_ms=now_ms))


def open_log(
    file_system: FileSystem,
    data_dir: str,
    config: LogConfig,
    *,
    synced_offset: int,
    now_ms: int,
    warn: Warn,
    topic_id: UUID | None = None,
) -> Log:
    """Open or create the metadata log's segments in ``data_dir``. Raises LogCorrupt, OSError."""
    removal = SegmentRemoval(file_system)
    # These files have no readers while they are removed.
    removal.remove_later = lambda paths, _: removal.remove_files(paths)
    return Log.open(
        file_system,
        f"{data_dir}/{CLUSTER_METADATA_TOPIC}-0",
        CLUSTER_METADATA_TOPIC,
        0,
        # Only records that snapshots contain are removed from its beginning.
        replace(config, max_message_bytes=MAX_BATCH_BYTES, retention_ms=-1, retention_bytes=-1),
        recovery_point=synced_offset,
        clean=False,
        now_ms=now_ms,
        warn=warn,
        topic_id=topic_id,
        removal=removal,
        is_metadata=True,
    )


def _batches(found: Iterator[MetadataBatch | None]) -> Iterator[MetadataBatch]:
    return (batch for batch in found if batch is not None)


def _decoding(path: str, found: Iterator[Record]) -> Generator[None, None, list[MetadataRecord]]:
    records: list[MetadataRecord] = []
    offset = -1
    try:
        for record in found:
            offset = record.offset
            records.append(decode(record.value or b""))
            if len(records) % _DECODED_TOGETHER == 0:
                yield
    except MalformedMessage as error:
        raise MetadataUnreadable(path, offset, error) from error
    return records
