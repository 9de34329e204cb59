"""Deadlines: aborts transactions that exceed their timeout, and expires unused transactional ids.

    transaction.timeout.ms             looked at every ``transaction.abort.timed.out.transaction.cleanup.interval.ms`` while any
                                       transaction is open: the producer is fenced, its transaction aborted; never
                                       one that an outside manager ends (KIP-939)
    transactional.id.expiration.ms     looked at every ``transaction.remove.expired.transaction.cleanup.interval.ms``: Empty or
                                       Complete* for so long, the id is forgotten

Source: ``TransactionStateManager.timedOutTransactions``, ``removeExpiredTransactionalIds`` of Apache Kafka.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.transaction.operations import fence
from odradek.coordinator.transaction.states import IDLE, TransactionState
from odradek.coordinator.transaction.transactions import NO_TIMEOUT_MS, record_of

if TYPE_CHECKING:
    from odradek.coordinator.transaction.markers import Markers
    from odradek.coordinator.transaction.transactions import Transactions
    from odradek.protocol.errors import KafkaError

_TIMEOUTS: Final = "abort-timed-out"
_EXPIRY: Final = "remove-expired"


class Timeouts:
    """The deadlines of one shard. Loop thread only."""

    __slots__ = ("_markers", "_transactions")

    def __init__(self, transactions: Transactions, markers: Markers) -> None:
        self._transactions = transactions
        self._markers = markers

    def load(self) -> None:
        """Schedule the expiry of ids after a load, and the timeout check if a transaction is open."""
        self._watch_expiry()
        self._watch_if_any_is_open()

    def watch(self) -> None:
        """Schedule the timeout check now that a transaction is open, unless it is scheduled already. HOT."""
        context = self._transactions.context
        if not context.is_scheduled(_TIMEOUTS):
            context.schedule(_TIMEOUTS, self._transactions.config.abort_timed_out_interval_ms, self._look)

    def _watch_if_any_is_open(self) -> None:
        if any(value.status == TransactionState.ONGOING for value in self._transactions.by_id.values()):
            self.watch()

    def _look(self) -> CoordinatorResult[None]:
        context = self._transactions.context
        for transactional_id in self._timed_out():
            # If the abort cannot be appended, the next check finds the transaction again.
            context.write(partial(self._abort, transactional_id))
        self._watch_if_any_is_open()
        return CoordinatorResult((), None)

    def _timed_out(self) -> list[str]:
        transactions = self._transactions
        now_ms = transactions.clock.now_ms()
        return [
            transactional_id
            for transactional_id, value in transactions.by_id.items()
            if value.status == TransactionState.ONGOING
            and value.timeout_ms != NO_TIMEOUT_MS
            and value.start_ms + value.timeout_ms < now_ms
            and transactional_id not in transactions.pending
        ]

    def _abort(self, transactional_id: str) -> CoordinatorResult[None]:
        transactions = self._transactions
        value = transactions.by_id[transactional_id]
        transactions.reports.info(
            "a transaction timed out",
            transactional_id=transactional_id,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.timeout_ms,
        )
        transactions.counters.timed_out += 1
        return fence(transactions, self._markers, transactional_id, value, None)

    def _watch_expiry(self) -> None:
        self._transactions.context.schedule(_EXPIRY, self._transactions.config.remove_expired_interval_ms, self._remove_expired)

    def _remove_expired(self) -> CoordinatorResult[None]:
        self._watch_expiry()
        transactions = self._transactions
        pending = transactions.pending
        latest_ms = transactions.clock.now_ms() - transactions.config.transactional_id_expiration_ms
        expired = [
            transactional_id
            for transactional_id, value in transactions.by_id.items()
            if value.status in IDLE and value.last_update_ms <= latest_ms and transactional_id not in pending
        ]
        for transactional_id in expired:
            pending[transactional_id] = TransactionState.DEAD

        def settle() -> None:
            for transactional_id in expired:
                transactions.end_pending(transactional_id)

        def persisted() -> None:
            transactions.counters.expired += len(expired)
            settle()

        def fail(_error: KafkaError) -> None:
            settle()

        return CoordinatorResult(
            [record_of(transactional_id, None) for transactional_id in expired], None, fail, persisted, atomic=False
        )
