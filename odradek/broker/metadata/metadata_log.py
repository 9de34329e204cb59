"""The log that the cluster's metadata lives on: `__cluster_metadata-0/` in the data directory, in Kafka's own format.

What one operation decides is one record batch, so a torn write leaves all of it or none: the log cuts an incomplete batch off
when it is next opened. An append returns once the batch is synced to disk, whatever `flush.*` says, as Kafka's controller does.

Left out: snapshots. The log holds some 60 bytes for a partition ever created, and is read once, at start. Elections: the leader
epoch stays what it is.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.broker.metadata.topic_names import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.metadata_records import MetadataRecord, UnknownMetadataRecord, decode, encode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.filesystem import FileSystem
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig
from odradek.storage.recovery import Warn

LEADER_EPOCH = 1
MAX_BATCH_BYTES = 8 * 1024 * 1024  # as KRaft's

_READ_BYTES = 1024 * 1024


class MetadataUnreadable(Exception):
    """The metadata cannot be read: the broker must not start, and one line says where and what to do."""

    def __init__(self, path: str, offset: int, error: MalformedMessage) -> None:
        advice = "restore the data directory from a backup, or open it with the broker that wrote it"
        if isinstance(error, UnknownMetadataRecord):
            advice = "a newer broker wrote it: open the data directory with that, or with a newer odradek"
        super().__init__(f"{path}, offset {offset}: {error.reason}; {advice}")


class MetadataBatch(NamedTuple):
    """The records of one batch, and the offset of the first."""

    base_offset: int
    records: list[MetadataRecord]


class MetadataLog:
    """The metadata log, open. Raises LogCorrupt from ``open`` where it cannot be trusted: the broker must not start then."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._failed = False

    @classmethod
    def open(cls, file_system: FileSystem, data_dir: str, *, now_ms: int, warn: Warn) -> "MetadataLog":
        """Open or create the log in ``data_dir``, every batch of it checked."""
        directory = f"{data_dir}/{CLUSTER_METADATA_TOPIC}-0"
        log = Log.open(
            file_system,
            directory,
            CLUSTER_METADATA_TOPIC,
            0,
            LogConfig(max_message_bytes=MAX_BATCH_BYTES, flush_messages=1),  # flushed by each append
            clean=False,
            now_ms=now_ms,
            warn=warn,
        )
        return cls(log)

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self._log.log_end_offset

    @property
    def leader_epoch(self) -> int:
        """That of the last leader there was: a log of Kafka's has had elections, and its epochs never go back."""
        return max(self._log.leader_epochs.latest, LEADER_EPOCH)

    def path_at(self, offset: int) -> str:
        """The file that has the record at ``offset``."""
        base_offset = max(
            (segment.base_offset for segment in self._log.segments if segment.base_offset <= offset),
            default=self._log.segments.first_offset,
        )
        return f"{self._log.directory}/{base_offset:020}.log"

    def read_all(self) -> Iterator[MetadataBatch]:
        """Every batch's records, from the first offset on. Raises MetadataUnreadable."""
        offset = self._log.log_start_offset
        while offset < self.end_offset:
            log_slice = self._log.read(offset, _READ_BYTES, upper_offset=self.end_offset, min_one_batch=True)
            if log_slice is None:
                return
            data = log_slice.read()
            for position, header in iter_batches(data):
                offset = header.next_offset
                if not header.is_control:
                    yield MetadataBatch(header.base_offset, self._decode(data, position, header.base_offset))

    def _decode(self, data: bytes, position: int, offset: int) -> list[MetadataRecord]:
        records = []
        try:
            for record in read_records(data, position):
                records.append(decode(record.value or b""))
                offset += 1
        except MalformedMessage as error:
            raise MetadataUnreadable(self.path_at(offset), offset, error) from error
        return records

    def append(self, records: Sequence[MetadataRecord], *, now_ms: int) -> None:
        """Append ``records`` as one batch and sync it.

        Raises KafkaError: MESSAGE_TOO_LARGE where they pass MAX_BATCH_BYTES, KAFKA_STORAGE_ERROR where the disk fails. After a
        failed sync nobody knows whether the batch is there, so nothing more is appended until the log is opened again. One that
        was not written, for want of room, is not there.
        """
        if self._failed:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log failed earlier; metadata is read-only until a restart"
            )
        batch = build_batch([Record(timestamp=now_ms, value=encode(record)) for record in records])
        end_offset = self._log.log_end_offset
        try:
            self._log.append(batch, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except KafkaError:
            self._failed = self._log.has_lost_sync or self._log.log_end_offset != end_offset
            raise

    def close(self, *, now_ms: int) -> None:
        """Close the log, tidily; there is nothing left to sync."""
        self._log.close(clean=not self._failed, now_ms=now_ms)
