"""Keeps the image and its publishers in step with an observer's copy of the metadata log.

Only committed records are replayed. Nothing is published until the image has caught up with the first high watermark that the
leader named. Then the whole image is one delta. After that, each delta is published before any other code runs, so image and
publishers are always in step.

A fetched snapshot replaces the image, and the difference is published.

The work is done by generators that run in slices: they yield where they may pause.
"""

from collections.abc import Callable, Generator
from typing import Protocol

from odradek.controller.metadata.cluster_metadata import Publishers
from odradek.controller.metadata.delta import MetadataDelta
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.loader import MetadataLoader, difference
from odradek.controller.metadata.snapshot_files import PART_SUFFIX, SnapshotId
from odradek.controller.quorum.followed_log import FollowedLog


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
