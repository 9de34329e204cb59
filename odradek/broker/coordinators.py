"""The group coordinator of this broker: its runtime on ``__consumer_offsets``, and what ties it to topics, start and stop.

A broker that has no groups pays nothing for it: the coordinator's packages are imported, and its shards made, when the first
request comes that asks for them, or right after the start where ``__consumer_offsets`` is there.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.controller.topic_names import CONSUMER_OFFSETS_TOPIC
from odradek.broker.logging import log
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.controller.image import Topic
    from odradek.broker.server import Broker
    from odradek.coordinator.group.config import GroupConfig
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.marker import EndTxnMarker
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.protocol.metadata_records import PartitionRecord

# The coordinator's packages in parts that take about as long to import, 10 to 20 ms each: clients are served in between.
_PARTS = (
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.group.classic.groups",
    "odradek.coordinator.group.classic.join",
    "odradek.coordinator.group.group_shard",
)
_MS_PER_MINUTE = 60_000
# Before the offsets of a deleted topic are looked for again in a shard that is still loading.
_LOADING_BACKOFF_MS = 1_000


class GroupCoordinator:
    """``runtime`` is what the handlers of group requests write to and read from. An observer of the controller."""

    def __init__(self, broker: Broker, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        """``call_soon`` stands in for the running event loop's."""
        self._broker = broker
        self._call_soon = call_soon
        self._runtime: CoordinatorRuntime[GroupShard] | None = None
        self._is_closed = False

    @property
    def runtime(self) -> CoordinatorRuntime[GroupShard]:
        """Made when first asked for."""
        return self._runtime or self._make_runtime()

    @property
    def is_made(self) -> bool:
        """Whether there is a runtime, and figures of it to look at."""
        return self._runtime is not None

    def start(self) -> None:
        """The broker serves from now on: load the groups there are, as soon as it has answered who waits already."""
        self._broker.controller.subscribe(self)
        if self._broker.partitions.of_topic(CONSUMER_OFFSETS_TOPIC):
            self._soon(lambda: self._prepare(_PARTS))

    def close(self) -> None:
        """Append what is decided, answer who waits, and coordinate nothing any more."""
        self._is_closed = True
        if self._runtime is not None:
            self._runtime.close()

    def write_marker(self, partition: int, marker: EndTxnMarker) -> None:
        """End a transaction on a partition of ``__consumer_offsets``: its offsets are committed, or gone.

        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, and those of
        ``CoordinatorRuntime.write``.
        """
        from odradek.coordinator.group.txn_offsets import end_transaction

        self._broker.partitions.require(CONSUMER_OFFSETS_TOPIC, partition)
        outcome: list[KafkaError | None] = []
        self.runtime.write(partition, lambda _: end_transaction(marker), outcome.append)
        if outcome and outcome[0] is not None:
            raise outcome[0]

    def partitions_created(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        """Part of MetadataObserver."""
        if topic.name == CONSUMER_OFFSETS_TOPIC and self._runtime is not None:
            for partition in partitions:
                self._runtime.start_loading(partition.partition_id, partition.leader_epoch)

    def topic_deleted(self, topic: Topic) -> None:
        """Part of MetadataObserver: a topic's offsets go with it."""
        if self._runtime is None:
            return
        for partition in self._runtime.partitions():
            if topic.name == CONSUMER_OFFSETS_TOPIC:
                self._runtime.unload(partition)
            else:
                self._delete_offsets(partition, topic)

    def configs_changed(self, resources: Sequence[tuple[int, str]]) -> None:
        """Part of MetadataObserver: nothing to do, configs are looked up when they matter."""

    def _delete_offsets(self, partition: int, topic: Topic) -> None:
        from odradek.coordinator.group.offset_delete import delete_offsets_of_topic

        def finished(outcome: KafkaError | None) -> None:
            if outcome is None or outcome.code == ErrorCode.NOT_COORDINATOR:
                return
            if outcome.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._broker.timer.call_after(_LOADING_BACKOFF_MS, lambda: self._delete_offsets(partition, topic))
            else:
                log.error("offsets of a deleted topic stay", outcome, topic=topic.name, partition=partition)

        self.runtime.write(partition, lambda shard: delete_offsets_of_topic(shard.offsets, topic.name, topic.topic_id), finished)

    def _soon(self, callback: Callable[[], None]) -> None:
        (self._call_soon or asyncio.get_running_loop().call_soon)(callback)

    def _prepare(self, parts: tuple[str, ...]) -> None:
        """Import one of ``parts``, in the next turns of the loop the others, then load; unless a request was faster."""
        if self._is_closed or self._runtime is not None:
            return
        if parts:
            import_module(parts[0])
            self._soon(lambda: self._prepare(parts[1:]))
        else:
            self._make_runtime()

    def _make_runtime(self) -> CoordinatorRuntime[GroupShard]:
        from odradek.broker.coordinator_logs import PartitionLogs
        from odradek.coordinator.runtime.record import decode_group_record
        from odradek.coordinator.runtime.runtime import DEFAULT_LOAD_BUFFER_BYTES, CoordinatorRuntime

        broker = self._broker
        config = broker.config
        runtime = self._runtime = CoordinatorRuntime(
            "group",
            PartitionLogs(broker, CONSUMER_OFFSETS_TOPIC, config["offsets.topic.compression.codec"], self._soon),
            self._make_shard,
            decode_group_record,
            broker.timer,
            on_fault=log.error,
            load_buffer_bytes=min(config["offsets.load.buffer.size"], DEFAULT_LOAD_BUFFER_BYTES),
        )
        for partition in broker.partitions.of_topic(CONSUMER_OFFSETS_TOPIC):
            runtime.start_loading(partition.index, partition.leader_epoch)
        return runtime

    def _make_shard(self, _partition: int, context: ShardContext) -> GroupShard:
        from odradek.coordinator.group.group_shard import GroupShard
        from odradek.coordinator.group.offsets import OffsetConfig

        config = self._broker.config
        return GroupShard(
            context,
            config=self._group_config,
            reports=log,
            new_id=self._new_id,
            offset_config=OffsetConfig(
                offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
                offsets_retention_ms=config["offsets.retention.minutes"] * _MS_PER_MINUTE,
                offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
            ),
        )

    def _group_config(self) -> GroupConfig:
        from odradek.coordinator.group.config import GroupConfig

        config = self._broker.config
        return GroupConfig(
            group_min_session_timeout_ms=config["group.min.session.timeout.ms"],
            group_max_session_timeout_ms=config["group.max.session.timeout.ms"],
            group_initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
            group_max_size=config["group.max.size"],
        )

    def _new_id(self) -> str:
        return str(UUID(int=self._broker.random.getrandbits(128), version=4))
