"""The states of a transactional id, and the one table of the transitions between them.

    Empty            no transaction yet, or a new producer since the last one
    Ongoing          partitions or offsets have been added
    Prepare*         the transaction's fate is in the log; markers are being written
    Complete*        every partition has its marker
    PrepareEpochFence  decided on, never written: the producer is fenced while its transaction is open, PrepareAbort follows
    Dead             expired: a tombstone is under way

An abort may also come from Empty and Complete*. A producer of KIP-890's second part may not know whether any of its transaction
arrived. It then aborts in any case, and gets its epoch bumped.

Source: ``TransactionState`` of Apache Kafka.
"""

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """The states, with their numbers in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


_S = TransactionState

# The names of the states in DescribeTransactions and ListTransactions.
STATE_NAMES: Final[dict[TransactionState, str]] = {
    _S.EMPTY: "Empty",
    _S.ONGOING: "Ongoing",
    _S.PREPARE_COMMIT: "PrepareCommit",
    _S.PREPARE_ABORT: "PrepareAbort",
    _S.COMPLETE_COMMIT: "CompleteCommit",
    _S.COMPLETE_ABORT: "CompleteAbort",
    _S.DEAD: "Dead",
    _S.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

PERMITTED: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
    _S.DEAD: frozenset(),
}

# No transaction is open, and none is being ended.
IDLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
# The transaction is committed or aborted, and some of its markers are not written yet.
PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})


class IllegalTransition(Exception):
    """An internal error: a transactional id was about to make a transition that the table does not permit."""


def check_transition(current: int, target: TransactionState) -> None:
    """Raise ``IllegalTransition`` unless the table permits the transition from ``current``, a state's number, to ``target``."""
    if target not in PERMITTED[current]:  # type: ignore[index]  # a number is as good a key as its state
        raise IllegalTransition(f"a transaction cannot go from state {current} to {STATE_NAMES[target]}")
