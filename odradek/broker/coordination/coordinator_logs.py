"""A coordinator's topic and its logs on this broker's partitions: implements ``coordinator.runtime.ports``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.coordination.services import CoordinatorServices, CoordinatorTopic
    from odradek.broker.replica.partition import Partition


class PartitionLog:
    """The log of one partition: implements the port in ``coordinator.runtime.ports``.

    The constructor and all methods that use the log raise KAFKA_STORAGE_ERROR if it is offline.
    """

    __slots__ = ("_compression", "_log", "_needs_enough_replicas", "_partition")

    def __init__(self, partition: Partition, compression: int, needs_enough_replicas: bool = False) -> None:
        self._partition = partition
        self._log = partition.require_log()
        self._compression = compression
        self._needs_enough_replicas = needs_enough_replicas

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._partition.require_log().log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will have."""
        return self._partition.require_log().log_end_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which records are committed. KafkaError: KAFKA_STORAGE_ERROR if it cannot rise any more."""
        partition = self._partition
        log = partition.require_log()
        if log.has_lost_sync and partition.high_watermark < log.log_end_offset:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the log could not be synced")
        return partition.high_watermark

    @property
    def max_batch_bytes(self) -> int:
        """The limit set by the topic's ``max.message.bytes`` and ``segment.bytes``."""
        # The partition has a new log after a move to another directory.
        self._log = self._partition.log or self._log
        return self._log.max_batch_bytes

    def append(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        """Append records as one batch, and return the offset behind the last."""
        if self._needs_enough_replicas:
            self._partition.require_enough_replicas()
        return self._partition.append_internal(records, now_ms, self._compression, producer)

    def append_marker(self, marker: EndTxnMarker, now_ms: int) -> int:
        """End a transaction, and return the offset behind the marker."""
        return self._partition.append_marker(marker, now_ms).last_offset + 1

    def left_open(self, producer_id: int, oldest_epoch: int) -> EndTxnMarker | None:
        """Return the marker that aborts a transaction whose marker is lost; None if there is none, or the log is offline."""
        try:
            producer = self._partition.require_log().producers.left_open(producer_id, oldest_epoch)
        except KafkaError:
            return None
        if producer is None:
            return None
        return EndTxnMarker(producer_id, producer.epoch, producer.coordinator_epoch, False)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches from ``offset`` on."""
        log = self._partition.require_log()
        found = log.read(offset, max_bytes, upper_offset=log.log_end_offset, min_one_batch=True)
        try:
            return b"" if found is None else found.read()
        except OSError as error:
            raise log.storage_error(error) from error


class PartitionLogs:
    """The logs of the topic: implements the port in ``coordinator.runtime.ports``."""

    def __init__(self, services: CoordinatorServices, about: CoordinatorTopic) -> None:
        self._services = services
        self._partitions = services.partitions
        self._topic = about.topic
        self._about = about

    @property
    def partition_count(self) -> int:
        """The topic's number of partitions. The topic is created if it does not exist.

        KafkaError: COORDINATOR_NOT_AVAILABLE while it is being created, or the error if it cannot be.
        """
        # The image counts all partitions; this broker may have replicas of only some.
        known = self._services.controller.image.topics.get(self._topic)
        if known is not None:
            return len(known.partitions)
        reply = self._services.controller.ensure_internal_topic(self._topic)
        if not reply.done:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self._topic} is being created")
        topic = reply.response
        if isinstance(topic, KafkaError):
            raise topic
        return len(topic.partitions)

    def open(self, partition: int) -> PartitionLog:
        """Return the log of a partition. KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR."""
        about = self._about
        return PartitionLog(self._partitions.require(self._topic, partition), about.compression, about.needs_enough_replicas)

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        """Call back whenever the high watermark has moved; None stops that."""
        found = self._partitions.get(self._topic, partition)
        if found is not None:
            found.on_high_watermark = callback

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when this turn of the event loop ends."""
        self._services.call_at_turn_end(callback)
