"""What the coordinators of this broker have in common: a runtime on their topic, and what ties it to that topic, start and stop.

A broker that has no use for a coordinator pays nothing for it: its packages are imported, and its shards made, when the first
request comes that asks for them, or right after the start where its topic is there.

The ports of ``coordinator.runtime``, a coordinator's topic and its logs, are implemented here on this broker's partitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from odradek.broker.logging import LineLimit, log
from odradek.broker.metadata.cluster_metadata import PublishingOrder
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.broker.coordination.services import CoordinatorServices, CoordinatorTopic
    from odradek.broker.metadata.delta import MetadataDelta
    from odradek.broker.metadata.image import MetadataImage
    from odradek.broker.metadata.topic import Topic
    from odradek.broker.replica.partition import Partition
    from odradek.coordinator.runtime.ports import CoordinatorShard
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.protocol.metadata_records import PartitionRecord


class PartitionLog:
    """One partition. All that touches its log raises KAFKA_STORAGE_ERROR where it is offline, the making of this object too.

    Part of ``coordinator.runtime.ports``.
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
        """Records below this offset are committed. KafkaError: KAFKA_STORAGE_ERROR where it cannot rise any more."""
        partition = self._partition
        log = partition.require_log()
        if log.has_lost_sync and partition.high_watermark < log.log_end_offset:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the log cannot be synced")
        return partition.high_watermark

    @property
    def max_batch_bytes(self) -> int:
        """What ``max.message.bytes`` and ``segment.bytes`` of the topic allow."""
        # The log is another one once the partition has moved to another directory.
        self._log = self._partition.log or self._log
        return self._log.max_batch_bytes

    def append(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        """Append records as one batch; the offset behind the last."""
        if self._needs_enough_replicas:
            self._partition.require_enough_replicas()
        return self._partition.append_internal(records, now_ms, self._compression, producer)

    def append_marker(self, marker: EndTxnMarker, now_ms: int) -> int:
        """End a transaction; the offset behind the marker."""
        return self._partition.append_marker(marker, now_ms).last_offset + 1

    def left_open(self, producer_id: int, oldest_epoch: int) -> EndTxnMarker | None:
        """The marker that aborts a transaction whose own is lost; None where the log is offline, as the append will tell."""
        try:
            producer = self._partition.require_log().producers.left_open(producer_id, oldest_epoch)
        except KafkaError:
            return None
        if producer is None:
            return None
        return EndTxnMarker(producer_id, producer.epoch, producer.coordinator_epoch, False)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from ``offset`` on."""
        log = self._partition.require_log()
        found = log.read(offset, max_bytes, upper_offset=log.log_end_offset, min_one_batch=True)
        try:
            return b"" if found is None else found.read()
        except OSError as error:
            raise log.storage_error(error) from error


class PartitionLogs:
    """The topic. Part of ``coordinator.runtime.ports``."""

    def __init__(self, services: CoordinatorServices, about: CoordinatorTopic) -> None:
        self._services = services
        self._partitions = services.partitions
        self._topic = about.topic
        self._about = about

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has; created if it is not there.

        KafkaError: COORDINATOR_NOT_AVAILABLE while it is being created, or why it cannot be.
        """
        # Other brokers may have replicas of the others.
        known = self._services.controller().image.topics.get(self._topic)
        if known is not None:
            return len(known.partitions)
        reply = self._services.controller().ensure_internal_topic(self._topic)
        if not reply.done:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self._topic} is being created")
        topic = reply.response
        if isinstance(topic, KafkaError):
            raise topic
        return len(topic.partitions)

    def open(self, partition: int) -> PartitionLog:
        """The log of a partition. KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR."""
        about = self._about
        return PartitionLog(self._partitions.require(self._topic, partition), about.compression, about.needs_enough_replicas)

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        """Call back whenever the high watermark has moved; None: no longer."""
        found = self._partitions.get(self._topic, partition)
        if found is not None:
            found.on_high_watermark = callback

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when this turn of the event loop ends."""
        self._services.call_at_turn_end(callback)


ShardT = TypeVar("ShardT", bound="CoordinatorShard")


def _tell_fault(topic: str, limit: LineLimit, event: str, error: BaseException) -> None:
    """Log a fault of the coordinator of ``topic``: in one line if its log is damaged, or its disk or replicas have failed."""
    left_out = limit.left_out(event)
    if left_out is None:
        return
    if isinstance(error, KafkaError) and error.code == ErrorCode.NOT_ENOUGH_REPLICAS:
        log.warn(event, topic=topic, reason=error.reason, **left_out)
    elif isinstance(error, KafkaError | MalformedMessage | OSError):
        log.error(event, None, topic=topic, reason=str(error), **left_out)
    else:
        log.error(event, error, topic=topic, **left_out)


class CoordinatorHost(ABC, Generic[ShardT]):
    """``runtime`` is what the handlers of requests write to and read from. A publisher of the controller's."""

    def __init__(self, services: CoordinatorServices, about: CoordinatorTopic) -> None:
        self._services = services
        self._about = about
        self._runtime: CoordinatorRuntime[ShardT] | None = None
        self._is_closed = False

    @property
    def runtime(self) -> CoordinatorRuntime[ShardT]:
        """Made when first asked for."""
        return self._runtime or self._make_runtime()

    @property
    def is_made(self) -> bool:
        """Whether there is a runtime, and figures of it to look at."""
        return self._runtime is not None

    def start(self) -> None:
        """The broker serves from now on: load what there is, as soon as it has answered who waits already."""
        self._services.controller().subscribe(self, PublishingOrder.COORDINATORS)
        if self._services.partitions.of_topic(self._about.topic):
            self._services.call_soon(lambda: self._prepare(self._about.modules))

    def close(self) -> None:
        """Append what is decided, answer who waits, and coordinate nothing any more."""
        self._is_closed = True
        if self._runtime is not None:
            self._runtime.close()

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Part of MetadataPublisher: partitions of the coordinator's topic are taken over and given up.

        A shard goes where its partition is led: it is loaded there from the log, at the epoch of the election, and unloaded here.
        """
        runtime = self._runtime
        if runtime is None:
            if any(self._leads(partition) for partition in self._of_topic(delta.changed_partitions)):
                self._services.call_soon(lambda: self._prepare(self._about.modules))
            return
        if any(topic.name == self._about.topic for topic in delta.deleted_topics):
            for index in runtime.partitions():
                runtime.unload(index)
        for partition in self._of_topic([*delta.new_partitions, *delta.changed_partitions]):
            if self._leads(partition):
                runtime.start_loading(partition.partition_id, partition.leader_epoch)
            else:
                runtime.unload(partition.partition_id, partition.leader_epoch)

    def _of_topic(self, partitions: Iterable[tuple[Topic, Sequence[PartitionRecord]]]) -> list[PartitionRecord]:
        return [each for topic, of_topic in partitions if topic.name == self._about.topic for each in of_topic]

    def _leads(self, partition: PartitionRecord) -> bool:
        node_id: int = self._services.config["node.id"]
        return partition.leader == node_id

    def abandon(self) -> None:
        """Begin nothing any more; nobody is told anything."""
        self._is_closed = True

    @abstractmethod
    def _make_shard(self, context: ShardContext) -> ShardT:
        """An empty shard."""

    @abstractmethod
    def _decoder(self) -> Callable[[bytes, bytes | None], CoordinatorRecord | None]:
        """What makes a record of the bytes on the topic, None where it does not know the key's version."""

    def _prepare(self, modules: tuple[str, ...]) -> None:
        """Import one of ``modules``, in the next turns of the loop the others, then load; unless a request was faster."""
        if self._is_closed or self._runtime is not None:
            return
        if modules:
            import_module(modules[0])
            self._services.call_soon(lambda: self._prepare(modules[1:]))
        else:
            self._make_runtime()

    def _make_runtime(self) -> CoordinatorRuntime[ShardT]:
        from odradek.coordinator.runtime.runtime import DEFAULT_LOAD_BUFFER_BYTES, CoordinatorRuntime

        services = self._services
        about = self._about
        runtime = self._runtime = CoordinatorRuntime(
            about.coordinator,
            PartitionLogs(services, about),
            lambda _, context: self._make_shard(context),
            self._decoder(),
            services.timer,
            on_fault=partial(_tell_fault, about.topic, LineLimit(services.timer.clock)),
            load_buffer_bytes=min(about.load_buffer_bytes, DEFAULT_LOAD_BUFFER_BYTES),
            on_much_loaded=services.on_much_loaded,
            write_timeout_ms=about.write_timeout_ms,
        )
        for partition in services.partitions.of_topic(about.topic).values():
            if partition.leader is not None:
                runtime.start_loading(partition.index, partition.leader_epoch)
        return runtime
