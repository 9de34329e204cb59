"""Counters of a shard's transactions by outcome, and of their durations."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from odradek.coordinator.transaction.states import TransactionState

if TYPE_CHECKING:
    from odradek.protocol.coordinator_records import TransactionLogValue

# Upper bounds of the duration histogram's buckets; the last bucket is what lies beyond them.
DURATION_BOUNDS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000)
# The outcomes, by the states that say them.
OUTCOMES: Final = {TransactionState.COMPLETE_COMMIT: "commit", TransactionState.COMPLETE_ABORT: "abort"}
_COMMITTED: Final = int(TransactionState.COMPLETE_COMMIT)
_ABORTED: Final = int(TransactionState.COMPLETE_ABORT)


class TransactionCounters:
    """What one shard has written since it was loaded. Plain numbers, read when somebody looks. Loop thread only.

    ``transitions`` are by the number of the state that was written. ``duration_buckets`` and ``duration_sum_ms`` are from a
    transaction's first partition to its Complete*, buckets by ``DURATION_BOUNDS_MS``, both by Complete*'s number. ``timed_out``
    counts transactions aborted for their timeout, ``expired`` transactional ids forgotten.
    """

    __slots__ = ("duration_buckets", "duration_sum_ms", "expired", "timed_out", "transitions")

    def __init__(self) -> None:
        self.transitions = [0] * len(TransactionState)
        self.duration_buckets = {state: [0] * (len(DURATION_BOUNDS_MS) + 1) for state in (_COMMITTED, _ABORTED)}
        self.duration_sum_ms = {_COMMITTED: 0, _ABORTED: 0}
        self.timed_out = 0
        self.expired = 0

    def note(self, value: TransactionLogValue) -> None:
        """``value`` is committed. HOT."""
        state = value.status
        self.transitions[state] += 1
        if state in (_COMMITTED, _ABORTED):
            # The wall clock may have been set back.
            duration_ms = max(value.last_update_ms - value.start_ms, 0)
            self.duration_buckets[state][bisect_left(DURATION_BOUNDS_MS, duration_ms)] += 1
            self.duration_sum_ms[state] += duration_ms
