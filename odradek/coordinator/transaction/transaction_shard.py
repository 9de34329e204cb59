"""The transactional ids of one partition of ``__transaction_state``: hosted by the runtime, called by the handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from odradek.coordinator.runtime.ports import WriteOrder
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.transaction.add_partitions import add_partitions, verify_partitions
from odradek.coordinator.transaction.describe import TransactionFilter, describe_transaction, list_transactions
from odradek.coordinator.transaction.end_txn import end_txn
from odradek.coordinator.transaction.init_producer_id import Outcome, init_producer_id
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.timeouts import Timeouts
from odradek.coordinator.transaction.transactions import Transactions
from odradek.protocol.coordinator_records import TransactionLogKey, UnknownKey, decode_transaction_key, decode_value

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.coordinator.transaction.config import MarkerWriter, ProducerIdentity, TransactionConfig, TransactionReports
    from odradek.protocol.coordinator_records import TransactionLogValue
    from odradek.protocol.errors import ErrorCode
    from odradek.protocol.message_types.describe_transactions import TransactionState as DescribedTransaction
    from odradek.protocol.message_types.list_transactions import TransactionState as ListedTransaction
    from odradek.timing.reply import Reply


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

        An uncommitted Prepare* may still be lost with this leader, so its markers are written only after it is committed.
        """
        self._loaded_offset = self._next_offset
        self.timeouts.load()
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
