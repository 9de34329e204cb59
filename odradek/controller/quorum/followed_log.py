"""An observer's own copy of `__cluster_metadata`, and the image and publishers that are kept in step with it.

    __cluster_metadata-0/   segments, indexes, ``leader-epoch-checkpoint``, ``partition.metadata``, snapshots, ``quorum-state``

The log is fetched from the leader, byte for byte, in Kafka's format. As with Kafka's observers, appends are not synced: records
lost in a power failure are fetched again. Records below the high watermark are committed. Only the leader knows the high
watermark, so it is unknown until the first response after a start. A snapshot newer than the log's end replaces the log, which
begins anew at the snapshot's end offset. If a crash comes after the rename of the snapshot, but before the old log is removed,
the next start finishes the job.

``ImageFollower`` replays only committed records. Nothing is published until the image has caught up with the first high watermark
that the leader named. Then the whole image is one delta. After that, each delta is published before any other code runs, so image
and publishers are always in step. A fetched snapshot replaces the image, and the difference is published. The work is done by
generators that run in slices: they yield where they may pause.
"""

from collections.abc import Callable, Generator, Iterator
from typing import Final, Protocol

from odradek.controller.metadata.cluster_metadata import Publishers
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.loader import MetadataLoader, difference
from odradek.controller.metadata.metadata_log import MetadataBatch, MetadataLog, open_log
from odradek.controller.metadata.snapshot_files import PART_SUFFIX, SnapshotFiles, SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID
from odradek.protocol.record_batch import Buffer
from odradek.storage.directories.checkpoints import PARTITION_METADATA_FILE, read_topic_id
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from odradek.storage.recovery.recovery import Warn

_DEFAULTS: Final = LogConfig()


class TruncationBelowCommitted(Exception):
    """The leader asks to remove committed records, so it does not lead the same log."""


class FollowedLog(MetadataLog):
    """The open copy. Loop thread only. Raises KafkaError if the disk fails.

    Records below ``applied_offset`` have been replayed into the image. A snapshot contains those records.
    """

    def __init__(self, log: Log, snapshots: SnapshotFiles) -> None:
        super().__init__(log, snapshots)
        self.high_watermark: int | None = None
        self.applied_offset = 0

    @classmethod
    def open_copy(
        cls, file_system: FileSystem, data_dir: str, *, now_ms: int, warn: Warn, config: LogConfig = _DEFAULTS
    ) -> "FollowedLog":
        """Open or create the copy in ``data_dir``; ``config`` has the segment limits.

        Raises LogCorrupt, OSError, KafkaError.
        """
        _mend_topic_id(file_system, f"{data_dir}/{CLUSTER_METADATA_TOPIC}-0")
        topic_id = CLUSTER_METADATA_TOPIC_ID
        log = open_log(file_system, data_dir, config, synced_offset=0, now_ms=now_ms, warn=warn, topic_id=topic_id)
        snapshots = SnapshotFiles(file_system, log.directory)
        snapshots.recover()
        copy = cls(log, snapshots)
        newest = copy.newest_snapshot
        if newest is not None and copy.is_behind(newest):
            copy.begin_at(newest, now_ms=now_ms)
        copy.snapshots.remove_below(log.log_start_offset)
        if log.log_start_offset > (0 if newest is None else newest.end_offset):
            raise LogCorrupt(
                f"{log.directory}: the log begins at offset {log.log_start_offset}, and no snapshot has the records before it;"
                " remove the directory to fetch a new copy"
            )
        return copy

    @property
    def directory(self) -> str:
        """Return the path of the log's directory."""
        return self._log.directory

    @property
    def last_fetched_epoch(self) -> int:
        """Return the leader epoch of the last record; in an empty log, the newest snapshot's epoch, or 0."""
        latest = self._log.leader_epochs.latest
        if latest >= 0:
            return latest
        newest = self.newest_snapshot
        return 0 if newest is None else newest.epoch

    @property
    def next_snapshot_id(self) -> SnapshotId:
        """Return the id of a snapshot of the applied records."""
        return SnapshotId(self.applied_offset, self._log.leader_epochs.epoch_for(self.applied_offset - 1))

    def is_behind(self, snapshot: SnapshotId) -> bool:
        """Return whether the log ends before ``snapshot`` does."""
        latest = max(self._log.leader_epochs.latest, 0)
        return snapshot.epoch > latest or (snapshot.epoch == latest and snapshot.end_offset > self.end_offset)

    def append_fetched(self, batches: Buffer, *, leader_epoch: int, now_ms: int) -> None:
        """Append batches from the leader of ``leader_epoch``. ValueError if their offsets are not the next ones.

        KafkaError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        self._log.append_as_follower(batches, leader_epoch=leader_epoch, now_ms=now_ms)

    def advance(self, high_watermark: int) -> None:
        """Note the leader's high watermark, limited to the log's end. It never goes back."""
        self.high_watermark = max(self.high_watermark or 0, min(high_watermark, self.end_offset))

    def truncate(self, epoch: int, end_offset: int, *, now_ms: int) -> int:
        """Remove records the leader, whose ``epoch`` ends at ``end_offset``, lacks. Return the new end offset.

        Raises TruncationBelowCommitted, KafkaError.
        """
        offset = self._truncation_offset(epoch, end_offset)
        self._ensure_kept(offset, f"the leader's epoch {epoch} ends at {end_offset}")
        self._log.truncate_to(offset, now_ms)
        return self.end_offset

    def ensure_later(self, snapshot: SnapshotId) -> None:
        """Raise TruncationBelowCommitted if ``snapshot``, which replaces the log, lacks committed records."""
        self._ensure_kept(snapshot.end_offset, f"the leader's snapshot ends at {snapshot.end_offset}")

    def _ensure_kept(self, offset: int, reason: str) -> None:
        newest = self.newest_snapshot
        committed = max(self.high_watermark or 0, 0 if newest is None else newest.end_offset)
        if offset < committed:
            raise TruncationBelowCommitted(f"{reason}, but records up to {committed} are committed")

    def _truncation_offset(self, epoch: int, end_offset: int) -> int:
        """Return the end offset to truncate to, as in ``ReplicatedLog.truncateToEndOffset``."""
        if epoch == 0:
            return min(end_offset, self.end_offset)
        known_epoch, known_end = self._log.end_offset_for_epoch(epoch)
        if known_epoch < 0:
            known_epoch, known_end = self.last_fetched_epoch, self.end_offset
        return min(known_end, end_offset) if known_epoch == epoch else known_end

    def begin_at(self, snapshot: SnapshotId, *, now_ms: int) -> None:
        """Let the log begin anew at the end of ``snapshot``, which is on disk. Raises KafkaError, OSError."""
        self._log.truncate_fully_and_start_at(snapshot.end_offset, now_ms)
        self.snapshots.remove_below(snapshot.end_offset)
        self.high_watermark = max(self.high_watermark or 0, snapshot.end_offset)

    def committed(self, offset: int) -> Iterator[MetadataBatch | None]:
        """Yield the committed batches from ``offset`` on, and None where the caller may pause. Raises MetadataUnreadable."""
        return self.reading(offset, self.high_watermark or 0)

    def close(self, *, now_ms: int) -> None:
        """Sync and close the log."""
        self._log.close(clean=not self._log.has_lost_sync, now_ms=now_ms)


def _mend_topic_id(file_system: FileSystem, directory: str) -> None:
    """Remove a ``partition.metadata`` torn by a loss of power; opening writes it anew. Raises OSError."""
    try:
        read_topic_id(file_system, directory)
    except ValueError:
        file_system.remove(f"{directory}/{PARTITION_METADATA_FILE}")


class Snapshots(Protocol):
    """Writes snapshots when they are due; implemented by the SnapshotGenerator."""

    def appended(self, size_bytes: int) -> None:
        """Note that so many bytes have been replayed."""

    def found(self, size_bytes: int) -> None:
        """Note, at start, so many bytes after the newest snapshot."""


class ImageFollower:
    """Keeps ``image`` equal to the committed part of ``log``. Loop thread only."""

    def __init__(self, log: FollowedLog, image: MetadataImage, publishers: Publishers, snapshots: Snapshots) -> None:
        self.image = image
        # True once the image has been published; and the callback to call once then.
        self.is_caught_up = False
        self.on_caught_up: Callable[[], object] | None = None
        self._log = log
        self._publishers = publishers
        self._snapshots = snapshots
        self._loader = MetadataLoader(image)
        self._is_started = False
        self._catches_up_at: int | None = None
        self._bytes = 0

    @property
    def applied_offset(self) -> int:
        """Return the offset below which the image has all records."""
        return self._log.applied_offset

    def advance(self, leader_high_watermark: int) -> Generator[None, None, None]:
        """Replay the records committed by now. Raises MetadataUnreadable, KafkaError, OSError."""
        if self._catches_up_at is None:
            self._catches_up_at = leader_high_watermark
        log = self._log
        if not self._is_started:
            yield from self._start()
        if log.applied_offset < (log.high_watermark or 0):
            for batch in log.committed(log.applied_offset):
                if batch is None:
                    yield
                    continue
                self._loader.replay(batch, log.path_at)
                log.applied_offset = batch.base_offset + len(batch.records)
                self._bytes += batch.size_bytes
                self._publish()
                yield
            # Control batches are not part of the image.
            log.applied_offset = log.high_watermark or 0
        self._publish()

    def replace(self, snapshot: SnapshotId, *, now_ms: int) -> Generator[None, None, None]:
        """Let the fetched part of ``snapshot`` replace log and image.

        Raises MetadataUnreadable if it is damaged, with log and image unchanged; KafkaError, OSError.
        """
        log = self._log
        image = MetadataImage()
        loader = MetadataLoader(image)
        path = log.snapshots.path(snapshot) + PART_SUFFIX
        for batch in log.reading_snapshot(snapshot, PART_SUFFIX):
            if batch is not None:
                loader.replay(batch, lambda _: path)
            yield
        log.snapshots.accept(snapshot)
        log.begin_at(snapshot, now_ms=now_ms)
        self._loader.begin_anew()
        self._bytes = 0
        delta = difference(self.image, image)
        self.image.become(image)
        log.applied_offset = snapshot.end_offset
        self._is_started = True
        if self.is_caught_up:
            self._tell(delta)

    def _start(self) -> Generator[None, None, None]:
        """Load the newest snapshot, whose records are committed."""
        log = self._log
        self._is_started = True
        newest = log.newest_snapshot
        if newest is None:
            return
        for batch in log.reading_snapshot(newest):
            if batch is not None:
                self._loader.replay(batch, lambda _: log.snapshot_path)
            yield
        log.applied_offset = newest.end_offset

    def _publish(self) -> None:
        """Publish the current image. It lacks the records of an open metadata transaction."""
        delta = self._loader.take_delta()
        if self.is_caught_up:
            self._tell(delta)
            # A snapshot has no place for the records of an open transaction.
            if self._bytes and not self._loader.is_in_transaction:
                size_bytes, self._bytes = self._bytes, 0
                self._snapshots.appended(size_bytes)
            return
        self._snapshots.found(self._bytes)
        self._bytes = 0
        if self._log.applied_offset >= (self._catches_up_at or 0):
            self.is_caught_up = True
            self._tell(difference(MetadataImage(), self.image))
            if self.on_caught_up is not None:
                self.on_caught_up()

    def _tell(self, delta: MetadataDelta) -> None:
        if not delta.is_empty:
            self._publishers.publish(delta, self.image)
