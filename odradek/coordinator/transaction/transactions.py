"""The transactional ids of one shard: their persistent state, and their pending changes.

A pending change is not persistent. From the decision on a change until it is committed, and from a transaction's end until
Complete* is committed, requests for other changes of the transactional id are answered CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import COMMITTED, TimelineDict
from odradek.coordinator.transaction.counters import TransactionCounters
from odradek.coordinator.transaction.states import STATE_NAMES, TransactionState
from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.coordinator.transaction.config import TransactionConfig, TransactionReports

T = TypeVar("T")

_new_tuple: Final = tuple.__new__


class Transactions:
    """Owner of one shard's transactional ids. Loop thread only.

    ``pending`` has the state, by its number, that an id is about to be in.
    """

    __slots__ = ("by_id", "clock", "config", "context", "counters", "new_producer_id", "pending", "reports")

    def __init__(
        self,
        context: ShardContext,
        config: TransactionConfig,
        *,
        new_producer_id: Callable[[], int],
        reports: TransactionReports,
    ) -> None:
        self.by_id: TimelineDict[str, TransactionLogValue] = TimelineDict(context.snapshots)
        self.pending: dict[str, int] = {}
        self.counters = TransactionCounters()
        self.context = context
        self.clock = context.clock
        self.config = config
        self.new_producer_id = new_producer_id
        self.reports = reports

    def replay(self, transactional_id: str, value: TransactionLogValue | None) -> None:
        """Apply a record; None is a tombstone."""
        if value is None:
            self.by_id.pop(transactional_id)
        else:
            self.by_id[transactional_id] = value

    def require_settled(self, transactional_id: str) -> None:
        """KafkaError(CONCURRENT_TRANSACTIONS) while a change is pending, or a load has found one that is not committed."""
        if transactional_id in self.pending:
            raise concurrent(self.pending[transactional_id])
        value = self.by_id.get(transactional_id)
        if self.by_id.get_at(transactional_id, COMMITTED) is not value:
            raise concurrent(TransactionState.DEAD if value is None else value.status)

    def move(
        self,
        transactional_id: str,
        value: TransactionLogValue,
        response: T,
        then: Callable[[], None] | None = None,
    ) -> CoordinatorResult[T]:
        """Write ``value``, which is pending until it is committed. Then ``then`` is called."""
        self.pending[transactional_id] = value.status

        def persisted() -> None:
            self.settle(transactional_id, value)
            if then is not None:
                then()

        def failed(_error: KafkaError) -> None:
            del self.pending[transactional_id]

        return CoordinatorResult((record_of(transactional_id, value),), response, failed, persisted)

    def settle(self, transactional_id: str, value: TransactionLogValue) -> None:
        """``value`` is committed."""
        del self.pending[transactional_id]
        self.counters.note(value)


def record_of(transactional_id: str, value: TransactionLogValue | None) -> CoordinatorRecord:
    """The record of ``value``; None is a tombstone."""
    # The quick way to make one: each transaction has five.
    return _new_tuple(CoordinatorRecord, (_new_tuple(TransactionLogKey, (transactional_id,)), value))


def concurrent(state: int) -> KafkaError:
    """The error of a request that arrives during a change to or from ``state``."""
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"a change of the transactional id is under way ({STATE_NAMES[TransactionState(state)]})",
    )
