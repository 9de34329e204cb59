"""The second phase of a transaction: a marker on each of its partitions, then Complete*.

Markers are written after the producer has been answered: when the turn of the event loop that committed Prepare* ends, or before
the next operation on the same shard. Complete* is decided with the last marker. So the producer's next request finds nothing
pending, and a reader that starts after the answer sees the committed records. A partition that cannot be written to is retried
until the write succeeds or the partition is deleted. It delays no other transaction. The log does not say which partitions have
their markers. After a load each partition gets one again, which is harmless.

A transaction waits for markers on their way to another broker or to followers. Other transactions continue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.result import CoordinatorResult, EndTxnMarker
from odradek.coordinator.runtime.timeline import COMMITTED
from odradek.coordinator.transaction.states import PREPARED, TransactionState, completed
from odradek.coordinator.transaction.transactions import record_of
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.coordinator.transaction.transactions import MarkerWriter, Transactions
    from odradek.protocol.coordinator_records import TransactionLogValue
    from odradek.timing.reply import Reply

# The fastest way to make a named tuple.
_new_tuple: Final = tuple.__new__

_PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
_COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT

# The delay before a failed marker is tried again.
RETRY_BACKOFF_MS: Final = 100
# The number of markers that are written in one turn of the event loop: the first one of a log takes half a millisecond.
_MARKERS_A_TURN: Final = 8

# The partition needs no marker: it is deleted, or a newer producer has ended the transaction or begun another one.
_NOT_NEEDED: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)


class Markers:
    """The transactions of one shard that are being ended. Loop thread only.

    By transactional id, ``remaining`` holds the partitions without a marker and ``under_way`` those whose marker is sent.
    """

    __slots__ = ("_sent_to", "_transactions", "_writer", "remaining", "under_way")

    def __init__(self, transactions: Transactions, writer: MarkerWriter) -> None:
        self.remaining: dict[str, list[tuple[str, int]]] = {}
        self.under_way: dict[str, set[tuple[str, int]]] = {}
        self._transactions = transactions
        self._writer = writer
        # The partitions whose delayed marker has been logged.
        self._sent_to: dict[str, set[tuple[str, int]]] = {}

    def __len__(self) -> int:
        """Return the number of markers still to be written."""
        return sum(map(len, self.remaining.values())) + sum(map(len, self.under_way.values()))

    def pending(self, transactional_id: str) -> list[tuple[str, int]] | None:
        """Return the partitions of a transaction without a confirmed marker; None if it is not being ended."""
        remaining = self.remaining.get(transactional_id)
        return None if remaining is None else [*remaining, *self.under_way.get(transactional_id, ())]

    @property
    def unfinished(self) -> int:
        """Return the number of transactions that have all markers and wait for Complete*."""
        return sum(not partitions and each not in self.under_way for each, partitions in self.remaining.items())

    def begin(self, transactional_id: str, value: TransactionLogValue) -> None:
        """Write the markers for ``value``, a committed Prepare*, after the answer. Pending until Complete* is committed."""
        is_commit = value.status == _PREPARE_COMMIT
        self._transactions.pending[transactional_id] = _COMPLETE_COMMIT if is_commit else _COMPLETE_ABORT
        self.remaining[transactional_id] = sorted(value.partitions)
        self._transactions.context.after_answer(lambda: self.write(transactional_id, value))

    def resume(self) -> None:
        """Continue the transactions whose Prepare* is committed after a load. Those under way already are left alone."""
        by_id, pending = self._transactions.by_id, self._transactions.pending
        for transactional_id, value in list(by_id.items()):
            is_committed = by_id.get_at(transactional_id, COMMITTED) is value
            if value.status in PREPARED and is_committed and transactional_id not in pending:
                self.begin(transactional_id, value)

    def write(self, transactional_id: str, value: TransactionLogValue) -> None:
        """Write the markers that can be written now."""
        marker = _new_tuple(
            EndTxnMarker,
            (
                value.producer_id,
                value.producer_epoch,
                self._transactions.context.leader_epoch,
                value.status == _PREPARE_COMMIT,
                value.client_transaction_version,
            ),
        )
        remaining = self.remaining[transactional_id]
        turn, later = remaining[:_MARKERS_A_TURN], remaining[_MARKERS_A_TURN:]
        failed = []
        for partition in turn:
            try:
                reply = self._writer.write_marker(partition[0], partition[1], marker)
            except KafkaError as error:
                if self._is_needed(transactional_id, partition, error):
                    failed.append(partition)
                continue
            if reply is None:
                continue
            if not reply.done:
                self._await(transactional_id, value, partition, reply)
            elif reply.response is not None and self._is_needed(transactional_id, partition, reply.response):
                failed.append(partition)
        self.remaining[transactional_id] = later + failed
        self._go_on(transactional_id, value, 0 if later else RETRY_BACKOFF_MS)

    def _go_on(self, transactional_id: str, value: TransactionLogValue, delay_ms: float) -> None:
        """Write the remaining markers in ``delay_ms``. If none remain, complete the transaction."""
        if self.remaining[transactional_id]:
            self._transactions.context.schedule(
                ("markers", transactional_id), delay_ms, lambda: self._write_again(transactional_id, value)
            )
        elif transactional_id not in self.under_way:
            self._complete(transactional_id)

    def _await(
        self, transactional_id: str, value: TransactionLogValue, partition: tuple[str, int], reply: Reply[KafkaError | None]
    ) -> None:
        """Keep the transaction incomplete until a marker under way is written."""
        under_way = self.under_way.setdefault(transactional_id, set())
        under_way.add(partition)

        def arrived(error: KafkaError | None) -> None:
            if not self._transactions.context.is_open:
                # The next coordinator writes the marker again.
                return
            under_way.discard(partition)
            if not under_way:
                self.under_way.pop(transactional_id, None)
            if error is not None and self._is_needed(transactional_id, partition, error):
                self.remaining[transactional_id].append(partition)
            if not self._transactions.context.is_scheduled(("markers", transactional_id)):
                self._go_on(transactional_id, value, RETRY_BACKOFF_MS)

        reply.when_done(arrived)

    def _is_needed(self, transactional_id: str, partition: tuple[str, int], error: KafkaError) -> bool:
        """Return whether an unwritten marker must be retried. The wait is logged only once."""
        if error.code in _NOT_NEEDED:
            self._report("a transaction's marker is not needed", transactional_id, partition, error)
            return False
        told = self._sent_to.setdefault(transactional_id, set())
        if partition not in told and error.code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            told.add(partition)
            self._report("cannot write a transaction's marker yet", transactional_id, partition, error)
        return True

    def _write_again(self, transactional_id: str, value: TransactionLogValue) -> CoordinatorResult[None]:
        """Write markers in an operation without records; Complete* is an operation of its own."""
        self.write(transactional_id, value)
        return CoordinatorResult((), None)

    def _complete(self, transactional_id: str) -> None:
        context = self._transactions.context

        def finished(outcome: object) -> None:
            if isinstance(outcome, KafkaError):
                # From here on, the deadline retries the completion.
                context.schedule(("markers", transactional_id), RETRY_BACKOFF_MS, lambda: self._completion(transactional_id))

        context.write(lambda: self._completion(transactional_id)).when_done(finished)

    def _completion(self, transactional_id: str) -> CoordinatorResult[None]:
        """Append Complete*. If that fails it stays pending, so that no transaction begins before it."""
        transactions = self._transactions
        value = completed(transactions.by_id[transactional_id], transactions.clock.now_ms())

        def persisted() -> None:
            del self.remaining[transactional_id]
            self._sent_to.pop(transactional_id, None)
            transactions.settle(transactional_id, value)

        return CoordinatorResult((record_of(transactional_id, value),), None, on_commit=persisted)

    def _report(self, event: str, transactional_id: str, partition: tuple[str, int], error: KafkaError) -> None:
        topic, index = partition
        self._transactions.reports.warn(
            event,
            transactional_id=transactional_id,
            topic=topic,
            partition=index,
            error=error.code.name,
            reason=error.reason,
        )
