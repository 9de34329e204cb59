"""The maker of the transaction coordinator's shards, by the broker's configs. Imported with the first transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.common.logging import log
from odradek.coordinator.transaction.transaction_shard import TransactionShard, decode_transaction_record
from odradek.coordinator.transaction.transactions import ConcurrentTransactions, ProducerIdentity, TransactionConfig

if TYPE_CHECKING:
    from odradek.broker.coordination.services import CoordinatorServices
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.transaction.transactions import MarkerWriter
    from odradek.protocol.errors import KafkaError


class TransactionShards:
    """Makes the shards of ``__transaction_state``. ``marker_writer`` writes their markers."""

    def __init__(self, services: CoordinatorServices, marker_writer: MarkerWriter) -> None:
        self.decode = decode_transaction_record
        self.identity = ProducerIdentity
        self._services = services
        self._marker_writer = marker_writer

    def make(self, context: ShardContext) -> TransactionShard:
        """Create an empty shard."""
        config = self._services.config
        return TransactionShard(
            context,
            TransactionConfig(
                transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
                abort_timed_out_interval_ms=config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
                remove_expired_interval_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
            ),
            new_producer_id=self._services.controller.next_producer_id,
            marker_writer=self._marker_writer,
            reports=log,
        )

    def is_unsettled(self, error: KafkaError) -> bool:
        """Return whether the operation may decide again, after the change of its id that is under way."""
        return isinstance(error, ConcurrentTransactions)
