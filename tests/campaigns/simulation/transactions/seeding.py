"""What is there before the history begins: transactional ids that have had other producers, some near the end of their epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metadata.topic_names import TRANSACTION_STATE_TOPIC
from odradek.coordinator.runtime.hashing import partition_for
from odradek.coordinator.runtime.record import CoordinatorRecord, encode_record
from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue
from tests.campaigns.simulation.transactions.fates import COMPLETE_COMMIT

if TYPE_CHECKING:
    from tests.campaigns.simulation.transactions.server import Server
    from tests.campaigns.simulation.transactions.world import World


def seed_epochs(world: World, server: Server) -> None:
    """Write them, before the coordinators are loaded."""
    now_ms = world.clock.now_ms()
    for plan in world.plan.producers:
        if plan.first_epoch is None:
            continue
        value = TransactionLogValue(
            server.controller.next_producer_id(),
            plan.first_epoch,
            plan.timeout_ms,
            COMPLETE_COMMIT,
            frozenset(),
            now_ms,
            now_ms,
        )
        world.witness.fates.seed(plan.transactional_id, value)
        record = CoordinatorRecord(TransactionLogKey(plan.transactional_id), value)
        partition = server.partitions.require(
            TRANSACTION_STATE_TOPIC, partition_for(plan.transactional_id, world.plan.transaction_shards)
        )
        partition.append_internal([encode_record(record)], now_ms)
