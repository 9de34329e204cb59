"""The transactional ids of one partition of ``__transaction_state``: hosted by the runtime, called by the handlers.

DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152) tell the committed state.

Source: ``TransactionCoordinator.handleDescribeTransactions``, ``TransactionStateManager.listTransactionStates`` of Apache
Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from odradek.coordinator.runtime.ports import WriteOrder
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.operations import Outcome, add_partitions, end_txn, init_producer_id, verify_partitions
from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.coordinator.transaction.timeouts import Timeouts
from odradek.coordinator.transaction.transactions import Transactions
from odradek.protocol.coordinator_records import TransactionLogKey, UnknownKey, decode_transaction_key, decode_value
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_transactions import TopicData
from odradek.protocol.message_types.describe_transactions import TransactionState as DescribedTransaction
from odradek.protocol.message_types.list_transactions import TransactionState as ListedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.transaction.transactions import MarkerWriter, ProducerIdentity, TransactionConfig, TransactionReports
    from odradek.protocol.coordinator_records import TransactionLogValue
    from odradek.timing.reply import Reply

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


class TransactionShard:
    """The shard of transactional ids; see ``coordinator.runtime.ports.CoordinatorShard``. Loop thread only."""

    __slots__ = ("_loaded_offset", "_next_offset", "markers", "timeouts", "transactions")

    write_order: ClassVar[WriteOrder] = WriteOrder.APPEND_THEN_REPLAY

    def __init__(
        self,
        context: ShardContext,
        config: TransactionConfig,
        *,
        new_producer_id: Callable[[], int],
        marker_writer: MarkerWriter,
        reports: TransactionReports,
    ) -> None:
        self.transactions = Transactions(context, config, new_producer_id=new_producer_id, reports=reports)
        self.markers = Markers(self.transactions, marker_writer)
        self.timeouts = Timeouts(self.transactions, self.markers)
        self._next_offset = self._loaded_offset = 0

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """Apply one record."""
        key, value = record
        self._next_offset = offset + 1
        if isinstance(key, TransactionLogKey):
            self.transactions.replay(key.transactional_id, cast("TransactionLogValue | None", value))

    def on_loaded(self, now_ms: int) -> None:  # noqa: ARG002  deadlines are measured on the monotonic clock
        """Continue ending the transactions in Prepare*, and schedule the deadlines of the others.

        An uncommitted Prepare* may still be lost with this leader, so its markers are written only after everything loaded is
        committed.
        """
        self._loaded_offset = self._next_offset
        self.timeouts.load()
        self.markers.resume()
        self.transactions.context.write(lambda: CoordinatorResult((), None, on_commit=self.markers.resume))

    def on_unloaded(self) -> Iterable[tuple[Reply[Any], object]]:
        """Return no replies, as this shard holds none."""
        return ()

    def init_producer_id(self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity) -> CoordinatorResult[Outcome]:
        """Handle InitProducerId with a transactional id."""
        return init_producer_id(self.transactions, self.markers, transactional_id, timeout_ms, expected)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: frozenset[tuple[str, int]], client_version: int
    ) -> CoordinatorResult[None]:
        """Handle AddPartitionsToTxn and AddOffsetsToTxn."""
        result = add_partitions(self.transactions, transactional_id, producer, partitions, client_version)
        self.timeouts.watch()
        return result

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: frozenset[tuple[str, int]], committed_offset: int
    ) -> dict[tuple[str, int], ErrorCode]:
        """Handle a verify-only AddPartitionsToTxn.

        Everything loaded counts as committed, as in Kafka. A newly elected leader learns of the commit only with the next
        fetches, while the previous coordinator has already answered the producer.
        """
        at_offset = max(committed_offset, self._loaded_offset)
        return verify_partitions(self.transactions, transactional_id, producer, partitions, at_offset)

    def end_txn(
        self, transactional_id: str, producer: ProducerIdentity, *, commit: bool, client_version: int
    ) -> CoordinatorResult[ProducerIdentity]:
        """Handle EndTxn."""
        return end_txn(self.transactions, self.markers, transactional_id, producer, commit=commit, client_version=client_version)

    def describe_transaction(self, transactional_id: str, committed_offset: int) -> DescribedTransaction:
        """Return the TransactionState for DescribeTransactions."""
        return describe_transaction(self.transactions, self.markers, transactional_id, committed_offset)

    def list_transactions(
        self, asked: TransactionFilter, committed_offset: int
    ) -> Generator[None, None, list[ListedTransaction]]:
        """List the TransactionStates for ListTransactions, in a generator that may be abandoned."""
        return list_transactions(self.transactions, asked, committed_offset)


def decode_transaction_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Decode a record. Return None if the version of its key is unknown. Raises MalformedMessage."""
    decoded = decode_transaction_key(key)
    if isinstance(decoded, UnknownKey):
        return None
    return CoordinatorRecord(decoded, decode_value(decoded, value))
