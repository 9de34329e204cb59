"""The transaction coordinator of this broker: its runtime on ``__transaction_state``, and what ties it to partitions and groups.

As with groups, a broker that has no transactions pays nothing for it: packages are imported and shards made when the first
request comes that asks for them, or right after the start where ``__transaction_state`` is there, for what was being committed or
aborted when the broker stopped has to be.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from odradek.broker.controller.topic_names import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.broker.logging import log
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.controller.image import Topic
    from odradek.broker.server import Broker
    from odradek.coordinator.runtime.marker import EndTxnMarker
    from odradek.coordinator.runtime.runtime import CoordinatorRuntime
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.coordinator.transaction.transaction_shard import TransactionShard
    from odradek.protocol.metadata_records import PartitionRecord

_PARTS = (
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.transaction.transaction_shard",
)
_NO_COMPRESSION = 0
# The transaction version of a client that leaves adding partitions to Produce (KIP-890).
_CLIENT_THAT_ADDS = 2

Verdicts = dict[tuple[str, int], ErrorCode]


class TransactionCoordinator:
    """``runtime`` is what the handlers of transaction requests write to and read from. An observer of the controller."""

    def __init__(self, broker: Broker, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        """``call_soon`` stands in for the running event loop's."""
        self._broker = broker
        self._call_soon = call_soon
        self._runtime: CoordinatorRuntime[TransactionShard] | None = None
        self._is_closed = False
        # Producers whose partitions are being added, and the partitions that wait for this.
        self._adding: dict[tuple[str, int, int], list[tuple[tuple[str, int], Reply]]] = {}

    @property
    def runtime(self) -> CoordinatorRuntime[TransactionShard]:
        """Made when first asked for."""
        return self._runtime or self._make_runtime()

    @property
    def is_made(self) -> bool:
        """Whether there is a runtime, and figures of it to look at."""
        return self._runtime is not None

    def start(self) -> None:
        """The broker serves from now on: load the transactions there are, as soon as it has answered who waits already."""
        self._broker.controller.subscribe(self)
        if self._broker.partitions.of_topic(TRANSACTION_STATE_TOPIC):
            self._soon(lambda: self._prepare(_PARTS))

    def close(self) -> None:
        """Append what is decided, answer who waits, and coordinate nothing any more."""
        self._is_closed = True
        if self._runtime is not None:
            self._runtime.close()

    def partitions_created(self, topic: Topic, partitions: Sequence[PartitionRecord]) -> None:
        """Part of MetadataObserver."""
        if topic.name == TRANSACTION_STATE_TOPIC and self._runtime is not None:
            for partition in partitions:
                self._runtime.start_loading(partition.partition_id, partition.leader_epoch)

    def topic_deleted(self, topic: Topic) -> None:
        """Part of MetadataObserver. Open transactions keep a deleted topic's partitions: those need no marker."""
        if topic.name == TRANSACTION_STATE_TOPIC and self._runtime is not None:
            for partition in self._runtime.partitions():
                self._runtime.unload(partition)

    def configs_changed(self, resources: Sequence[tuple[int, str]]) -> None:
        """Part of MetadataObserver: nothing to do, none of the configs that matter here can change."""

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, topic: str, partition: int, *, adds: bool
    ) -> ErrorCode | Reply:
        """Whether a partition is in the producer's open transaction (KIP-890): NONE, TRANSACTION_ABORTABLE, or what is wrong.

        Where it ``adds``, the partition is added to it first, and the answer comes later, in a Reply. Partitions asked for while
        others of the same producer are being added wait for these, and are then added all together.
        """
        asked = frozenset({(topic, partition)})
        if not adds:
            return self.verify_partitions(transactional_id, producer_id, producer_epoch, asked)[topic, partition]
        producer = (transactional_id, producer_id, producer_epoch)
        reply = Reply()
        if producer in self._adding:
            self._adding[producer].append(((topic, partition), reply))
        else:
            self._adding[producer] = []
            self._add(producer, [((topic, partition), reply)])
        return reply

    def _add(self, producer: tuple[str, int, int], asked: list[tuple[tuple[str, int], Reply]]) -> None:
        def respond(code: ErrorCode) -> None:
            waiting = self._adding.pop(producer)
            if waiting:
                self._adding[producer] = []
                self._add(producer, waiting)
            for _, reply in asked:
                reply.complete(code)

        partitions = frozenset(partition for partition, _ in asked)
        self.add_partitions(*producer, partitions, _CLIENT_THAT_ADDS).when_done(respond)

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[tuple[str, int]]
    ) -> Verdicts:
        """The same for many, none of which is added."""
        from odradek.coordinator.transaction.config import ProducerIdentity

        producer = ProducerIdentity(producer_id, producer_epoch)
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        try:
            return self.runtime.read(
                transactional_id, lambda shard, offset: shard.verify_partitions(transactional_id, producer, partitions, offset)
            )
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[tuple[str, int]],
        client_version: int,
    ) -> Reply:
        """Have partitions in the producer's transaction; the Reply is completed with an ErrorCode for all of them.

        ``client_version`` is 2 for a client whose Produce and TxnOffsetCommit do this by themselves (KIP-890), else 0.
        """
        from odradek.coordinator.transaction.config import ProducerIdentity

        producer = ProducerIdentity(producer_id, producer_epoch)
        reply = Reply()
        if not transactional_id:
            reply.complete(ErrorCode.INVALID_REQUEST)
            return reply

        def respond(outcome: KafkaError | None) -> None:
            reply.complete(ErrorCode.NONE if outcome is None else outcome.code)

        self.runtime.write(
            transactional_id,
            lambda shard: shard.add_partitions(transactional_id, producer, partitions, client_version),
            respond,
        )
        return reply

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> None:
        """Part of MarkerWriter, and what WriteTxnMarkers does: offsets that were pending are committed or gone, too."""
        broker = self._broker
        if topic == CONSUMER_OFFSETS_TOPIC:
            broker.groups.write_marker(partition, marker)
        else:
            broker.partitions.require(topic, partition).append_marker(marker, broker.clock.now_ms())

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

    def _make_runtime(self) -> CoordinatorRuntime[TransactionShard]:
        from odradek.broker.coordinator_logs import PartitionLogs
        from odradek.coordinator.runtime.runtime import DEFAULT_LOAD_BUFFER_BYTES, CoordinatorRuntime
        from odradek.coordinator.transaction.record import decode_transaction_record

        broker = self._broker
        runtime = self._runtime = CoordinatorRuntime(
            "transaction",
            PartitionLogs(broker, TRANSACTION_STATE_TOPIC, _NO_COMPRESSION, self._soon),
            self._make_shard,
            decode_transaction_record,
            broker.timer,
            on_fault=log.error,
            load_buffer_bytes=min(broker.config["transaction.state.log.load.buffer.size"], DEFAULT_LOAD_BUFFER_BYTES),
        )
        for partition in broker.partitions.of_topic(TRANSACTION_STATE_TOPIC):
            runtime.start_loading(partition.index, partition.leader_epoch)
        return runtime

    def _make_shard(self, _partition: int, context: ShardContext) -> TransactionShard:
        from odradek.coordinator.transaction.config import TransactionConfig
        from odradek.coordinator.transaction.transaction_shard import TransactionShard

        config = self._broker.config
        return TransactionShard(
            context,
            TransactionConfig(
                transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
                abort_timed_out_interval_ms=config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
                remove_expired_interval_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
            ),
            new_producer_id=self._broker.controller.next_producer_id,
            marker_writer=self,
            reports=log,
        )
