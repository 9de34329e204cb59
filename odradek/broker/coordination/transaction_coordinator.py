"""The transaction coordinator of this broker: a runtime on ``__transaction_state``, linked to partitions and groups.

If ``__transaction_state`` exists, it is loaded right after the start: transactions that were being committed or aborted when the
broker stopped must be completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.broker.coordination.coordinator_host import CoordinatorHost
from odradek.broker.coordination.services import CoordinatorTopic
from odradek.broker.replica.delayed_produce import DelayedProduce
from odradek.broker.replica.partition import ALL_IN_SYNC
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply, replied

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.broker.coordination.transaction_shards import TransactionShards
    from odradek.broker.replica.partition import Partition
    from odradek.coordinator.runtime.result import CoordinatorResult, EndTxnMarker
    from odradek.coordinator.transaction.transaction_shard import TransactionShard
    from odradek.coordinator.transaction.transactions import Transactions

_MODULES: Final = (
    "odradek.coordinator.runtime.runtime",
    "odradek.coordinator.transaction.transaction_shard",
)
_NONE: Final = ErrorCode.NONE
_new_tuple: Final = tuple.__new__
# The transaction version of a client whose Produce adds partitions (KIP-890).
_ADDING_CLIENT_VERSION: Final = 2

Verdicts = dict[tuple[str, int], ErrorCode]

T = TypeVar("T")


class OtherBrokers(Protocol):
    """The other brokers of a cluster, as used by transactions."""

    def is_here(self, topic: str, partition: int) -> bool:
        """Return whether this broker leads a partition, or no such partition is known."""

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None]:
        """Have the leader of a partition append a marker. KafkaError if there is no leader."""

    def coordinates(self, transactional_id: str) -> bool:
        """Return whether this broker leads the partition of ``__transaction_state`` for the id."""

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[tuple[str, int]], *, adds: bool
    ) -> Reply[Verdicts]:
        """Ask the id's coordinator for the answer that ``TransactionCoordinator.verify`` gives here."""


class TransactionCoordinator(CoordinatorHost["TransactionShard"]):
    """The transaction coordinator of this broker. See ``CoordinatorHost``.

    Open transactions keep the partitions of a deleted topic; these need no marker.
    """

    def __init__(
        self,
        services: CoordinatorServices,
        write_group_marker: Callable[[int, EndTxnMarker], Reply[KafkaError | None] | None],
        others: OtherBrokers | None = None,
    ) -> None:
        """``write_group_marker`` ends a transaction on a partition of ``__consumer_offsets``.

        ``others`` is None if there are no other brokers.
        """
        load_buffer_bytes = services.config["transaction.state.log.load.buffer.size"]
        # The longest wait for the replication of a transaction's state or of a marker. A late marker is written again.
        self._replication_timeout_ms: int = services.config["request.timeout.ms"]
        about = CoordinatorTopic(
            "transaction",
            TRANSACTION_STATE_TOPIC,
            _MODULES,
            load_buffer_bytes,
            self._replication_timeout_ms,
            needs_enough_replicas=True,
        )
        super().__init__(services, about)
        self._made: TransactionShards | None = None
        self._write_group_marker = write_group_marker
        self.others = others
        self._max_settling_ms: int = services.config["add.partitions.to.txn.retry.backoff.max.ms"]
        # Cached, as each marker asks for it.
        self._partitions = services.partitions
        self._clock = services.timer.clock

    def write(
        self, transactional_id: str, operation: Callable[[TransactionShard], CoordinatorResult[T]]
    ) -> Reply[T | KafkaError]:
        """Have ``operation`` decide, as ``CoordinatorRuntime.write`` does. While a change of the id is under way, it waits.

        When a producer begins its next transaction, the last one may still be completing. Kafka answers CONCURRENT_TRANSACTIONS,
        and the producer retries after a backoff. Here the operation waits, for
        ``add.partitions.to.txn.retry.backoff.max.ms`` at most.
        """
        runtime = self.runtime
        reply = runtime.write(transactional_id, operation)
        if not reply.done or not isinstance(reply.response, KafkaError) or not self._shards().is_unsettled(reply.response):
            return reply
        settled: Reply[T | KafkaError] = Reply()
        runtime.read(transactional_id, _transactions).decide_when_settled(
            transactional_id,
            lambda: runtime.write(transactional_id, operation).when_done(settled.complete),
            self._max_settling_ms,
        )
        return settled

    def settle(self, transactional_id: str) -> None:
        """Write the markers of a transaction that was answered in this turn of the event loop, and complete it."""
        if self._runtime is not None:
            self._runtime.settle(transactional_id)

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, topic: str, partition: int, *, adds: bool
    ) -> ErrorCode | Reply[ErrorCode]:
        """Verify that a partition is in the producer's open transaction (KIP-890): NONE, TRANSACTION_ABORTABLE, or another error.

        If ``adds``, the partition is added first, and the answer may come later, in a Reply.
        """
        asked = frozenset(((topic, partition),))
        others = self.others
        if others is not None and not others.coordinates(transactional_id):
            verdicts = others.verify(transactional_id, producer_id, producer_epoch, asked, adds=adds)
            return verdicts.then(lambda found: found[topic, partition])
        if not adds:
            return self.verify_partitions(transactional_id, producer_id, producer_epoch, asked)[topic, partition]
        reply = self.add_partitions(transactional_id, producer_id, producer_epoch, asked, _ADDING_CLIENT_VERSION)
        if reply.done:
            code: ErrorCode = reply.response
            return code
        return reply

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[tuple[str, int]]
    ) -> Verdicts:
        """Verify many partitions without adding any."""
        producer = _new_tuple(self._shards().identity, (producer_id, producer_epoch))
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
    ) -> Reply[ErrorCode]:
        """Add partitions to the producer's transaction. The Reply completes with one ErrorCode for all of them.

        ``client_version`` is 2 for a client whose Produce and TxnOffsetCommit add partitions by themselves (KIP-890), else 0.
        """
        producer = _new_tuple(self._shards().identity, (producer_id, producer_epoch))
        if not transactional_id:
            return replied(ErrorCode.INVALID_REQUEST)
        return self.write(
            transactional_id, lambda shard: shard.add_partitions(transactional_id, producer, partitions, client_version)
        ).then(_code)

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None] | None:
        """Write a marker here, or have the leader of the partition write it."""
        others = self.others
        if others is not None and not others.is_here(topic, partition):
            return others.write_marker(topic, partition, marker)
        return self.write_marker_here(topic, partition, marker)

    def write_marker_here(self, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None] | None:
        """Write a marker to a partition here. For group offsets, commit or drop the pending ones.

        Errors: MarkerWriter's, and NOT_ENOUGH_REPLICAS: a marker is written with acks=all.
        """
        if topic == CONSUMER_OFFSETS_TOPIC:
            return self._write_group_marker(partition, marker)
        found = self._partitions.require(topic, partition)
        found.require_enough_replicas()
        last_offset = found.append_marker(marker, self._clock.now_ms()).last_offset
        leader = found.leader
        if leader is None or leader.followers is None or last_offset < found.high_watermark:
            # Without followers there is nothing to wait for.
            return None
        return self._when_replicated(found, last_offset)

    def _when_replicated(self, partition: Partition, last_offset: int) -> Reply[KafkaError | None]:
        """Return a Reply for a marker's replication. A marker lost with its leader would leave the transaction open."""
        reply: Reply[KafkaError | None] = Reply()

        def respond(codes: list[ErrorCode]) -> None:
            reply.complete(None if codes[0] == _NONE else KafkaError(codes[0], "the marker was not replicated in time"))

        deadline_ms = self._clock.monotonic_ms() + self._replication_timeout_ms
        waiting = DelayedProduce(deadline_ms, [(partition, last_offset)], ALL_IN_SYNC, respond)
        self._services.produce_purgatory.try_complete_else_watch(waiting, (partition,))
        return reply

    def _shards(self) -> TransactionShards:
        if self._made is None:
            # 16 ms, and only brokers with transactions need it.
            from odradek.broker.coordination.transaction_shards import TransactionShards

            self._made = TransactionShards(self._services, self)
        return self._made


def _transactions(shard: TransactionShard, _committed_offset: int) -> Transactions:
    return shard.transactions


def _code(outcome: KafkaError | None) -> ErrorCode:
    return _NONE if outcome is None else outcome.code
