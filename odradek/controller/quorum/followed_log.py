"""An observer's own copy of `__cluster_metadata`: what it fetched from the leader, byte for byte, in Kafka's format.

    __cluster_metadata-0/   segments, indexes, ``leader-epoch-checkpoint``, ``partition.metadata``, snapshots, ``quorum-state``

Nothing is synced per append, as by Kafka's observers: what a loss of power takes is fetched again. Records below the high
watermark are committed. Only the leader knows it, so it is unknown until the first response after a start.

A snapshot that is newer than the log's end replaces the log, which begins anew at the snapshot's end offset. A crash between the
rename of such a snapshot and the end of the log in front of it is finished by the next start.
"""

from collections.abc import Iterator
from typing import Final

from odradek.controller.metadata.metadata_log import MetadataBatch, MetadataLog, open_log
from odradek.controller.metadata.snapshot_files import SnapshotFiles, SnapshotId
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
    """The leader wants records to go that were committed: it is not the leader of the same log."""


class FollowedLog(MetadataLog):
    """The copy, open. Loop thread only; KafkaError where the disk fails.

    ``applied_offset`` is up to where the records have been replayed into the image: a snapshot is of those.
    """

    def __init__(self, log: Log, snapshots: SnapshotFiles) -> None:
        super().__init__(log, snapshots)
        self.high_watermark: int | None = None
        self.applied_offset = 0

    @classmethod
    def open_copy(
        cls, file_system: FileSystem, data_dir: str, *, now_ms: int, warn: Warn, config: LogConfig = _DEFAULTS
    ) -> "FollowedLog":
        """Open or create the copy in ``data_dir``; ``config`` has the limits of segments.

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
                f"{log.directory}: the log begins at offset {log.log_start_offset}, and no snapshot has what was in front of it;"
                " remove the directory, and its copy is fetched anew"
            )
        return copy

    @property
    def directory(self) -> str:
        """The path of the log's directory."""
        return self._log.directory

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot on disk."""
        return self.snapshots.ids[-1] if self.snapshots.ids else None

    @property
    def last_fetched_epoch(self) -> int:
        """The leader epoch of the last record, the snapshot's in an empty log behind one, 0 in one that has never had any."""
        latest = self._log.leader_epochs.latest
        if latest >= 0:
            return latest
        newest = self.newest_snapshot
        return 0 if newest is None else newest.epoch

    @property
    def next_snapshot_id(self) -> SnapshotId:
        """The id of a snapshot of what has been applied."""
        return SnapshotId(self.applied_offset, self._log.leader_epochs.epoch_for(self.applied_offset - 1))

    def is_behind(self, snapshot: SnapshotId) -> bool:
        """Return whether the log ends in front of where ``snapshot`` does."""
        latest = max(self._log.leader_epochs.latest, 0)
        return snapshot.epoch > latest or (snapshot.epoch == latest and snapshot.end_offset > self.end_offset)

    def append_fetched(self, batches: Buffer, *, leader_epoch: int, now_ms: int) -> None:
        """Append what the leader of ``leader_epoch`` sent. ValueError for other offsets than those that are next.

        KafkaError: CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        self._log.append_as_follower(batches, leader_epoch=leader_epoch, now_ms=now_ms)

    def advance(self, high_watermark: int) -> None:
        """Note the leader's high watermark, as far as the log has its records; it never goes back."""
        self.high_watermark = max(self.high_watermark or 0, min(high_watermark, self.end_offset))

    def truncate(self, epoch: int, end_offset: int, *, now_ms: int) -> int:
        """Remove what the leader does not have, in whose log ``epoch`` ends at ``end_offset``; the new end offset.

        Raises TruncationBelowCommitted, KafkaError.
        """
        offset = self._truncation_offset(epoch, end_offset)
        self._ensure_kept(offset, f"the leader's epoch {epoch} ends at {end_offset}")
        self._log.truncate_to(offset, now_ms)
        return self.end_offset

    def ensure_later(self, snapshot: SnapshotId) -> None:
        """Raise TruncationBelowCommitted where ``snapshot``, which is to take the log's place, lacks what was committed."""
        self._ensure_kept(snapshot.end_offset, f"the leader's snapshot ends at {snapshot.end_offset}")

    def _ensure_kept(self, offset: int, reason: str) -> None:
        newest = self.newest_snapshot
        committed = max(self.high_watermark or 0, 0 if newest is None else newest.end_offset)
        if offset < committed:
            raise TruncationBelowCommitted(f"{reason}, and up to {committed} all is committed")

    def _truncation_offset(self, epoch: int, end_offset: int) -> int:
        """As ``ReplicatedLog.truncateToEndOffset`` has it."""
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
        """The committed batches from ``offset`` on; None where one may pause. Raises MetadataUnreadable."""
        return self.reading(offset, self.high_watermark or 0)

    def close(self, *, now_ms: int) -> None:
        """Close the log, synced."""
        self._log.close(clean=not self._log.has_lost_sync, now_ms=now_ms)


def _mend_topic_id(file_system: FileSystem, directory: str) -> None:
    """Remove a ``partition.metadata`` that a loss of power has torn; opening writes it anew. Raises OSError."""
    try:
        read_topic_id(file_system, directory)
    except ValueError:
        file_system.remove(f"{directory}/{PARTITION_METADATA_FILE}")
