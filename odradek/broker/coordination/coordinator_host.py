"""The common part of this broker's coordinators: a runtime on their topic, kept in step with its partitions, start and stop.

A broker that does not need a coordinator pays nothing for it. Its packages are imported, and its shards created, by the first
request for it, or right after the start if its topic exists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from odradek.common.logging import LineLimit, log
from odradek.controller.metadata.cluster_metadata import PublishingOrder
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.broker.coordination.services import CoordinatorServices, CoordinatorTopic
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.image import MetadataImage
    from odradek.controller.metadata.topic import Topic
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.ports import CoordinatorShard
    from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.protocol.metadata_records import PartitionRecord


# The delay before a shard that is still loading is asked again.
_LOADING_BACKOFF_MS: Final = 1_000

ShardT = TypeVar("ShardT", bound="CoordinatorShard")
MadeT_co = TypeVar("MadeT_co", bound="CoordinatorShard", covariant=True)


def _log_fault(topic: str, limit: LineLimit, event: str, error: BaseException) -> None:
    """Log a coordinator's fault. One line is enough if its log is damaged, or its disk or replicas have failed."""
    extra_fields = limit.admit(event)
    if extra_fields is None:
        return
    if isinstance(error, KafkaError) and error.code == ErrorCode.NOT_ENOUGH_REPLICAS:
        log.warn(event, topic=topic, reason=error.reason, **extra_fields)
    elif isinstance(error, KafkaError | MalformedMessage | OSError):
        log.error(event, None, topic=topic, reason=str(error), **extra_fields)
    else:
        log.error(event, error, topic=topic, **extra_fields)


class ShardMaker(Protocol[MadeT_co]):
    """The maker of one coordinator's shards. Its module is imported when the coordinator is first needed."""

    def make(self, context: ShardContext) -> MadeT_co:
        """Create an empty shard."""

    @property
    def decode(self) -> Callable[[bytes, bytes | None], CoordinatorRecord | None]:
        """The decoder of the topic's records. It returns None for an unknown version of the key."""


class CoordinatorHost(ABC, Generic[ShardT]):
    """A coordinator's runtime on its topic. Handlers read and write through ``runtime``. A publisher of the controller."""

    def __init__(self, services: CoordinatorServices, about: CoordinatorTopic) -> None:
        self._services = services
        self._about = about
        self._runtime: CoordinatorRuntime[ShardT] | None = None
        self._is_closed = False

    @property
    def runtime(self) -> CoordinatorRuntime[ShardT]:
        """The runtime, created on first use."""
        return self._runtime or self._make_runtime()

    @property
    def has_runtime(self) -> bool:
        """Return whether the runtime exists, and so has metrics."""
        return self._runtime is not None

    def start(self) -> None:
        """Load existing shards now that the broker serves, after it has answered the requests that wait already."""
        self._services.controller.subscribe(self, PublishingOrder.COORDINATORS)
        if self._services.partitions.of_topic(self._about.topic):
            self._services.call_soon(lambda: self._prepare(self._about.modules))

    def close(self) -> None:
        """Append what is decided, answer the waiting requests, and stop coordinating."""
        self._is_closed = True
        if self._runtime is not None:
            self._runtime.close()

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Load and unload shards as leaders of the coordinator's partitions change.

        A shard moves with its partition's leadership. The new leader loads it from the log, at the epoch of its election; the old
        leader unloads it.
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

    def _write_to_all(self, purpose: str, operation: Callable[[ShardT], CoordinatorResult[Any]]) -> None:
        """Run an operation on every shard here; on a shard that is loading, once it has loaded."""
        for partition in self.runtime.partitions():
            self._write_to(partition, purpose, operation)

    def _write_to(self, partition: int, purpose: str, operation: Callable[[ShardT], CoordinatorResult[Any]]) -> None:
        def finished(outcome: object) -> None:
            if not isinstance(outcome, KafkaError) or outcome.code == ErrorCode.NOT_COORDINATOR:
                return
            if outcome.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._services.timer.call_after(_LOADING_BACKOFF_MS, lambda: self._write_to(partition, purpose, operation))
            else:
                log.error(f"cannot {purpose}", outcome, partition=partition)

        self.runtime.write(partition, operation).when_done(finished)

    def _of_topic(self, partitions: Iterable[tuple[Topic, Sequence[PartitionRecord]]]) -> list[PartitionRecord]:
        return [each for topic, of_topic in partitions if topic.name == self._about.topic for each in of_topic]

    def _leads(self, partition: PartitionRecord) -> bool:
        node_id: int = self._services.config["node.id"]
        return partition.leader == node_id

    def abandon(self) -> None:
        """Begin nothing more, and answer nothing."""
        self._is_closed = True

    @abstractmethod
    def _shards(self) -> ShardMaker[ShardT]:
        """Import the coordinator's packages, and return its maker of shards."""

    def _prepare(self, modules: tuple[str, ...]) -> None:
        """Import ``modules``, one in each turn of the loop, then load, unless a request has created the runtime meanwhile."""
        if self._is_closed or self._runtime is not None:
            return
        if modules:
            import_module(modules[0])
            self._services.call_soon(lambda: self._prepare(modules[1:]))
        else:
            self._make_runtime()

    def _make_runtime(self) -> CoordinatorRuntime[ShardT]:
        # 11 ms, and many brokers have no groups and no transactions.
        from odradek.broker.coordination.coordinator_logs import PartitionLogs
        from odradek.coordinator.runtime.runtime import DEFAULT_LOAD_BUFFER_BYTES, CoordinatorRuntime

        services = self._services
        about = self._about
        shards = self._shards()
        runtime = self._runtime = CoordinatorRuntime(
            about.coordinator,
            PartitionLogs(services, about),
            lambda _, context: shards.make(context),
            shards.decode,
            services.timer,
            on_fault=partial(_log_fault, about.topic, LineLimit(services.timer.clock)),
            load_buffer_bytes=min(about.load_buffer_bytes, DEFAULT_LOAD_BUFFER_BYTES),
            on_bulk_load=services.on_bulk_load,
            write_timeout_ms=about.write_timeout_ms,
        )
        for partition in services.partitions.of_topic(about.topic).values():
            if partition.leader is not None:
                runtime.start_loading(partition.index, partition.leader_epoch)
        return runtime
