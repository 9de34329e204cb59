"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152): the committed state.

Source: ``TransactionCoordinator.handleDescribeTransactions``, ``TransactionStateManager.listTransactionStates`` of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_transactions import TopicData
from odradek.protocol.message_types.describe_transactions import TransactionState as DescribedTransaction
from odradek.protocol.message_types.list_transactions import TransactionState as ListedTransaction

if TYPE_CHECKING:
    from odradek.coordinator.transaction.markers import Markers
    from odradek.coordinator.transaction.transactions import Transactions
    from odradek.protocol.coordinator_records import TransactionLogValue

# The number of transactions listed without a pause: half a millisecond.
_TOGETHER: Final = 250


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """The filters of ListTransactions except its pattern. Empty collections and a negative duration match everything."""

    states: Collection[TransactionState]
    producer_ids: Collection[int]
    duration_ms: int

    def includes(self, value: TransactionLogValue, now_ms: int) -> bool:
        """Return whether the filters match ``value``."""
        if self.producer_ids and value.producer_id not in self.producer_ids:
            return False
        if self.states and value.status not in self.states:
            return False
        return self.duration_ms < 0 or now_ms - value.start_ms > self.duration_ms


def describe_transaction(
    transactions: Transactions, markers: Markers, transactional_id: str, at_offset: int
) -> DescribedTransaction:
    """Return the TransactionState for DescribeTransactions. A transaction being ended lists its partitions without a marker."""
    value = transactions.by_id.get_at(transactional_id, at_offset)
    if value is None:
        return DescribedTransaction(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    partitions = sorted(value.partitions)
    if value.status in PREPARED:
        pending = markers.pending(transactional_id)
        partitions = partitions if pending is None else sorted(pending)
    topics = [
        TopicData(topic=topic, partitions=[index for _, index in group])
        for topic, group in groupby(partitions, key=lambda each: each[0])
    ]
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=STATE_NAMES[TransactionState(value.status)],
        transaction_timeout_ms=value.timeout_ms,
        transaction_start_time_ms=value.start_ms,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        topics=topics,
    )


def list_transactions(
    transactions: Transactions, asked: TransactionFilter, at_offset: int
) -> Generator[None, None, list[ListedTransaction]]:
    """List the TransactionStates for ListTransactions, as of the first step of this generator. It may be abandoned."""
    now_ms = transactions.clock.now_ms()
    listed = []
    for place, (transactional_id, value) in enumerate(list(transactions.by_id.items_at(at_offset)), 1):
        if asked.includes(value, now_ms):
            state = STATE_NAMES[TransactionState(value.status)]
            listed.append(
                ListedTransaction(transactional_id=transactional_id, producer_id=value.producer_id, transaction_state=state)
            )
        if place % _TOGETHER == 0:
            yield None
    return listed
