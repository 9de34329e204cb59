"""Writes snapshots of the metadata: when one is due, and the first one of a new log. Deletes the log that snapshots contain.

A snapshot is due once ``metadata.log.max.record.bytes.between.snapshots`` bytes have been appended since the last one, or when a
record is appended and the last one is ``metadata.log.max.snapshot.interval.ms`` old. Its records are taken from the image at that
moment, and written off the loop. They are in the order in which Kafka's ``ImageWriter`` writes them.

The newest snapshot, and the log from it on, are always kept. Older ones, and the log from them on, are kept within two limits:
``metadata.max.retention.bytes`` for the log and all snapshots together, and ``metadata.max.retention.ms`` for the age of the
oldest snapshot.

The snapshot of offset 0 has the first records of a new metadata log. Kafka's ``kafka-storage.sh format`` writes it, until 4.3 as
``bootstrap.checkpoint`` beside the log's directory; so does ``odradek format``. Its feature levels are for Kafka; odradek begins
with its own. Users' SCRAM credentials are taken over.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from odradek.common.config import BrokerConfig
from odradek.common.logging import log as broker_log
from odradek.controller.metadata.features import BOOTSTRAP_RECORDS, METADATA_VERSION
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.metadata_log import MetadataLog, MetadataUnreadable
from odradek.controller.metadata.snapshot_files import BOOTSTRAP, SnapshotFiles, SnapshotId
from odradek.controller.metadata.topic import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    TopicRecord,
    decode,
)
from odradek.protocol.metadata_records.security import UserScramCredentialRecord
from odradek.storage.filesystem import FileSystem
from odradek.timing.background import Background
from odradek.timing.clock import Clock


class _OlderBootstrap(SnapshotId):
    """The file's place until Kafka 4.3: beside the log's directory."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "bootstrap.checkpoint"


_OLDER_BOOTSTRAP = _OlderBootstrap(0, 0)


def write_bootstrap(file_system: FileSystem, directory: str, records: Sequence[MetadataRecord], now_ms: int) -> None:
    """Write the records that a new metadata log in ``directory`` begins with. Raises OSError."""
    log_directory = _log_directory(directory)
    file_system.make_dirs(log_directory)
    files = SnapshotFiles(file_system, log_directory)
    files.write(BOOTSTRAP, [*BOOTSTRAP_RECORDS, *records], (), contained_ms=now_ms, now_ms=now_ms)


def _log_directory(directory: str) -> str:
    return f"{directory}/{CLUSTER_METADATA_TOPIC}-0"


def read_bootstrap(file_system: FileSystem, directory: str) -> list[MetadataRecord]:
    """Return the credentials that a new metadata log in ``directory`` begins with. Raises MetadataUnreadable, OSError."""
    found: list[MetadataRecord] = []
    for place, snapshot in ((directory, _OLDER_BOOTSTRAP), (_log_directory(directory), BOOTSTRAP)):
        if snapshot.name not in file_system.list_dir(place):
            continue
        files = SnapshotFiles(file_system, place)
        try:
            batches = [batch for is_control, batch in files.read(snapshot) if not is_control]
            found += [decode(record.value or b"") for batch in batches for record in batch]
        except MalformedMessage as error:
            raise MetadataUnreadable(files.path(snapshot), 0, error) from error
    return [record for record in found if isinstance(record, UserScramCredentialRecord)]


# The broker and epoch of a block of producer ids, which the image does not store.
_NO_BROKER = -1


def records_of(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield records that recreate the image from an empty one, except for the ids of deleted topics.

    A snapshot begins with the metadata version, as it determines how to read the rest.
    """
    for name in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from image.kept.records()
    yield from image.quotas.records()
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        yield from topic.partitions.values()
    for resource_type, resource_name, name, value in image.overrides:
        yield ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=_NO_BROKER, next_producer_id=image.next_producer_id)


class SnapshotGenerator:
    """The snapshots of one controller. Loop thread only."""

    def __init__(
        self, log: MetadataLog, image: MetadataImage, config: BrokerConfig, clock: Clock, background: Background
    ) -> None:
        self._log = log
        self._image = image
        self._clock = clock
        self._background = background
        self._max_bytes: int = config["metadata.log.max.record.bytes.between.snapshots"]
        self._interval_ms: int = config["metadata.log.max.snapshot.interval.ms"]
        self._retention_bytes: int = config["metadata.max.retention.bytes"]
        self._retention_ms: int = config["metadata.max.retention.ms"]
        self._bytes = 0
        self._last_ms = clock.monotonic_ms()
        self._is_writing = False

    def appended(self, size_bytes: int) -> None:
        """Note a batch of ``size_bytes`` that is in the log and in the image."""
        self._bytes += size_bytes
        if self._is_writing:
            return
        is_old = self._interval_ms > 0 and self._clock.monotonic_ms() - self._last_ms >= self._interval_ms
        if self._bytes >= self._max_bytes or is_old:
            self._generate()

    def found(self, size_bytes: int) -> None:
        """Note, at start, a batch of ``size_bytes`` after the newest snapshot."""
        self._bytes += size_bytes

    def _generate(self) -> None:
        log = self._log
        snapshot = log.next_snapshot_id
        records = list(records_of(self._image))
        quorum = [log.quorum[kind] for kind in sorted(log.quorum)]
        contained_ms, now_ms = log.last_append_ms, self._clock.now_ms()
        self._is_writing = True
        self._bytes = 0
        self._last_ms = self._clock.monotonic_ms()
        self._background.run(
            lambda: log.snapshots.write(snapshot, records, quorum, contained_ms=contained_ms, now_ms=now_ms),
            lambda outcome: self._written(snapshot, outcome),
        )

    def _written(self, snapshot: SnapshotId, outcome: Future[None]) -> None:
        self._is_writing = False
        try:
            outcome.result()
            self._log.snapshots.add(snapshot)
            # Meanwhile an observer's log may have restarted at a later snapshot.
            self._log.snapshots.remove_below(self._log.start_offset)
            self._image.removed_topic_ids.clear()
            self.clean()
        except (KafkaError, MalformedMessage, OSError) as error:
            broker_log.error("cannot write a snapshot of the metadata", error, snapshot=snapshot.name)

    def clean(self) -> None:
        """Remove the oldest snapshots, and the log before the remaining ones.

        Raises KafkaError, MalformedMessage, OSError.
        """
        files = self._log.snapshots
        now_ms = self._clock.now_ms()
        while len(files.ids) > 1 and (self._is_too_large() or self._is_too_old(now_ms)):
            self._log.delete_before(files.ids[1], now_ms=now_ms)

    def _is_too_large(self) -> bool:
        files = self._log.snapshots
        total = self._log.size_bytes + sum(map(files.size, files.ids))
        return 0 <= self._retention_bytes < total

    def _is_too_old(self, now_ms: int) -> bool:
        files = self._log.snapshots
        return 0 <= self._retention_ms < now_ms - files.last_contained_ms(files.ids[0])
