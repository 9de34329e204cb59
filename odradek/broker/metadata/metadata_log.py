"""The log that the cluster's metadata lives on: `__cluster_metadata-0/` in the data directory, in Kafka's own format.

What one operation decides is one record batch, so a torn write leaves all of it or none: the log cuts an incomplete batch off
when it is next opened. An append returns once the batch is synced to disk, whatever `flush.*` says, as Kafka's controller does.

Left out: snapshots. The log holds some 60 bytes for a partition ever created, and is read once, at start. There is one leader
epoch, since nobody is ever elected.
"""

from collections.abc import Iterator, Sequence

from odradek.broker.metadata.topic_names import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import MetadataRecord, decode, encode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.filesystem import FileSystem
from odradek.storage.log import Log
from odradek.storage.log_config import LogConfig
from odradek.storage.recovery import Warn

LEADER_EPOCH = 1
MAX_BATCH_BYTES = 8 * 1024 * 1024  # as KRaft's

_READ_BYTES = 1024 * 1024


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

    def read_all(self) -> Iterator[list[MetadataRecord]]:
        """Every batch's records, from the first offset on. Raises MalformedMessage for a record that is not ours."""
        offset = self._log.log_start_offset
        while offset < self.end_offset:
            log_slice = self._log.read(offset, _READ_BYTES, upper_offset=self.end_offset, min_one_batch=True)
            if log_slice is None:
                return
            data = log_slice.read()
            for position, header in iter_batches(data):
                offset = header.next_offset
                if not header.is_control:
                    yield [decode(record.value or b"") for record in read_records(data, position)]

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
            self._log.append(batch, leader_epoch=LEADER_EPOCH, now_ms=now_ms)
        except KafkaError:
            self._failed = self._log.has_lost_sync or self._log.log_end_offset != end_offset
            raise

    def close(self, *, now_ms: int) -> None:
        """Close the log, tidily; there is nothing left to sync."""
        self._log.close(clean=not self._failed, now_ms=now_ms)
