"""The transactional ids of one shard: their persistent state, and their pending changes.

A pending change is not persistent. A change is pending from its decision until it is committed; a transaction's end until
Complete* is committed. Meanwhile requests for other changes of the transactional id are answered CONCURRENT_TRANSACTIONS.

Transactions are counted by outcome, with their durations.

Also the configs of transactions, and the ports through which the coordinator writes markers and log lines.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.coordinator.runtime.timeline import COMMITTED, TimelineDict
from odradek.coordinator.transaction.states import PREPARED, STATE_NAMES, TransactionState
from odradek.protocol.coordinator_records import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.timer import DelayedOperation, Purgatory

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.result import EndTxnMarker
    from odradek.timing.reply import Reply

# The timeout value for transactions that an external manager ends (KIP-939): they have no timeout.
NO_TIMEOUT_MS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """The configs of transactions, under Kafka's names and with its defaults; none of them changes while a broker runs."""

    transactional_id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch. Both are -1 if there is none."""

    producer_id: int
    producer_epoch: int


class MarkerWriter(Protocol):
    """Ends a producer's transaction on one partition."""

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None] | None:
        """Append the marker. Return a Reply if it must still be replicated, or written by another broker.

        KafkaError: UNKNOWN_TOPIC_OR_PARTITION if the partition is deleted, INVALID_PRODUCER_EPOCH or
        TRANSACTION_COORDINATOR_FENCED if a newer epoch has written there, any other error if the write may be retried.
        """


class TransactionReports(Protocol):
    """The broker's log, for the coordinator's lines."""

    def info(self, event: str, **fields: object) -> None:
        """Log an event that may interest an operator."""

    def warn(self, event: str, **fields: object) -> None:
        """Log a refusal or a failure that an operator should know."""


# Upper bounds of the duration histogram's buckets. The last bucket counts longer durations.
DURATION_BOUNDS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000)
# The outcomes, by state.
OUTCOMES: Final = {TransactionState.COMPLETE_COMMIT: "commit", TransactionState.COMPLETE_ABORT: "abort"}
_COMMITTED: Final = int(TransactionState.COMPLETE_COMMIT)
_ABORTED: Final = int(TransactionState.COMPLETE_ABORT)


class TransactionCounters:
    """Counters of one shard's writes since it was loaded. Plain numbers, read on demand. Loop thread only.

    ``transitions`` is indexed by the number of the state written. ``duration_buckets`` (see ``DURATION_BOUNDS_MS``) and
    ``duration_sum_ms`` measure from a transaction's first partition to its Complete*, and are keyed by the number of that state.
    ``timed_out`` counts transactions aborted by timeout, ``expired`` the transactional ids removed.
    """

    __slots__ = ("duration_buckets", "duration_sum_ms", "expired", "timed_out", "transitions")

    def __init__(self) -> None:
        self.transitions = [0] * len(TransactionState)
        self.duration_buckets = {state: [0] * (len(DURATION_BOUNDS_MS) + 1) for state in (_COMMITTED, _ABORTED)}
        self.duration_sum_ms = {_COMMITTED: 0, _ABORTED: 0}
        self.timed_out = 0
        self.expired = 0

    def note(self, value: TransactionLogValue) -> None:
        """Count ``value``, which is committed. HOT."""
        state = value.status
        self.transitions[state] += 1
        if state in (_COMMITTED, _ABORTED):
            # The wall clock may have been set back.
            duration_ms = max(value.last_update_ms - value.start_ms, 0)
            self.duration_buckets[state][bisect_left(DURATION_BOUNDS_MS, duration_ms)] += 1
            self.duration_sum_ms[state] += duration_ms


T = TypeVar("T")

_new_tuple: Final = tuple.__new__


class ConcurrentTransactions(KafkaError):
    """CONCURRENT_TRANSACTIONS for a request that changed nothing, as a change to or from ``state`` is under way."""

    def __init__(self, state: int) -> None:
        super().__init__(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"the transactional id is being changed ({STATE_NAMES[TransactionState(state)]})",
        )


class DelayedDecision(DelayedOperation):
    """A request that waits until no change of its transactional id is under way, and is then decided."""

    __slots__ = ("_decide", "_is_settled")

    def __init__(self, deadline_ms: float, is_settled: Callable[[], bool], decide: Callable[[], object]) -> None:
        super().__init__(deadline_ms)
        self._is_settled = is_settled
        self._decide = decide

    def try_complete(self) -> bool:
        """Complete if no change is under way."""
        return self._is_settled() and self.force_complete()

    def on_complete(self) -> None:
        """Decide, whether or not the deadline has passed."""
        self._decide()


class Transactions:
    """Owner of one shard's transactional ids. Loop thread only.

    ``pending`` maps an id to the number of the state it is about to enter.
    """

    __slots__ = ("by_id", "clock", "config", "context", "counters", "new_producer_id", "pending", "reports", "settling")

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
        self.settling: Purgatory[DelayedDecision] = Purgatory("TransactionSettling", context.timer)

    def replay(self, transactional_id: str, value: TransactionLogValue | None) -> None:
        """Apply a record; None is a tombstone."""
        if value is None:
            self.by_id.pop(transactional_id)
        else:
            self.by_id[transactional_id] = value

    def is_settled(self, transactional_id: str) -> bool:
        """Return True if no change of the transactional id is under way."""
        if transactional_id in self.pending:
            return False
        value = self.by_id.get(transactional_id)
        if value is not None and value.status in PREPARED:
            return False
        return self.by_id.get_at(transactional_id, COMMITTED) is value

    def decide_when_settled(self, transactional_id: str, decide: Callable[[], object], max_wait_ms: float) -> None:
        """Call ``decide`` once no change of the transactional id is under way, or after ``max_wait_ms``."""
        deadline_ms = self.clock.monotonic_ms() + max_wait_ms
        delayed = DelayedDecision(deadline_ms, partial(self.is_settled, transactional_id), decide)
        self.settling.try_complete_else_watch(delayed, (transactional_id,))

    def require_settled(self, transactional_id: str) -> None:
        """Raise ConcurrentTransactions while a change is under way, which a load may have found."""
        if not self.is_settled(transactional_id):
            value = self.by_id.get(transactional_id)
            state = TransactionState.DEAD if value is None else value.status
            raise ConcurrentTransactions(self.pending.get(transactional_id, state))

    def move(
        self,
        transactional_id: str,
        value: TransactionLogValue,
        response: T,
        then: Callable[[], None] | None = None,
    ) -> CoordinatorResult[T]:
        """Write ``value``, which is pending until it is committed. Then call ``then``."""
        self.pending[transactional_id] = value.status

        def persisted() -> None:
            self.settle(transactional_id, value)
            if then is not None:
                then()

        def failed(_error: KafkaError) -> None:
            self.end_pending(transactional_id)

        return CoordinatorResult((record_of(transactional_id, value),), response, failed, persisted)

    def settle(self, transactional_id: str, value: TransactionLogValue) -> None:
        """End the pending change to ``value``, which is committed."""
        self.end_pending(transactional_id)
        self.counters.note(value)

    def end_pending(self, transactional_id: str) -> None:
        """End the pending change. Requests that wait for it are retried once this one is answered."""
        del self.pending[transactional_id]
        if self.settling.delayed:
            self.context.after_answer(partial(self.settling.check_and_complete, transactional_id))


def record_of(transactional_id: str, value: TransactionLogValue | None) -> CoordinatorRecord:
    """Return the record of ``value``; None makes a tombstone."""
    # The fastest way to make one: each transaction has five.
    return _new_tuple(CoordinatorRecord, (_new_tuple(TransactionLogKey, (transactional_id,)), value))
