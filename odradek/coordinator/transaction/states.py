"""The states of a transactional id, the one table of the transitions between them, and the functions that make them.

    Empty            no transaction yet, or a new producer since the last one
    Ongoing          partitions or offsets have been added
    Prepare*         the transaction's fate is in the log; markers are being written
    Complete*        every partition has its marker
    PrepareEpochFence  decided on, never written: the producer is fenced while its transaction is open, PrepareAbort follows
    Dead             expired: a tombstone is under way

An abort may also come from Empty and Complete*. A producer of KIP-890's second part may not know whether any of its transaction
arrived. It then aborts in any case, and gets its epoch bumped.

Transitions of a transactional id: pure functions from its current state to the next state to write.

Clients get epochs up to 32,766, so that the coordinator can always fence the last one with 32,767. A producer that has
exhausted its epochs gets a new id, with epoch 0:

    InitProducerId    on the spot, no transaction is open then
    EndTxn, from version 5 on, and a fence    ``next_producer_id`` is written with Prepare*, whose markers have epoch 32,767, and
                      comes into use with Complete*

Source: ``TransactionState``, ``TransactionMetadata`` of Apache Kafka; KIP-360, KIP-890.
"""

from enum import IntEnum
from typing import Final

from odradek.protocol.coordinator_records import TransactionLogValue


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


NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
LAST_EPOCH: Final = 2**15 - 2
# The client transaction versions: with an epoch bump for each transaction (KIP-890), and without.
EPOCH_BUMPING_VERSION: Final = 2
OLDEST_VERSION: Final = 0
_new_tuple: Final = tuple.__new__

_ONGOING: Final = TransactionState.ONGOING
_PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
_PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT


def is_exhausted(epoch: int) -> bool:
    """Return whether the epoch is the last one that a client may have."""
    return epoch >= LAST_EPOCH


def created(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionLogValue:
    """Return the first state of a new transactional id."""
    return TransactionLogValue(
        producer_id, 0, timeout_ms, TransactionState.EMPTY, frozenset(), now_ms, previous_producer_id=producer_id
    )


def initialized(
    current: TransactionLogValue, timeout_ms: int, now_ms: int, *, epoch: int, last_epoch: int, producer_id: int | None = None
) -> TransactionLogValue:
    """Return the state after InitProducerId: Empty, with this epoch, and the new ``producer_id`` if given."""
    return _moved(
        current,
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
    )._replace(timeout_ms=timeout_ms)


def with_partitions(
    current: TransactionLogValue, partitions: frozenset[tuple[str, int]], client_version: int, now_ms: int
) -> TransactionLogValue:
    """Return the state after AddPartitionsToTxn: Ongoing, with more partitions. Begins a transaction if none was open."""
    return _moved(
        current,
        _ONGOING,
        now_ms,
        partitions=current.partitions | partitions,
        start_ms=now_ms if current.status in IDLE else None,
        client_version=client_version,
    )


def prepared(
    current: TransactionLogValue, now_ms: int, *, commit: bool, client_version: int, next_producer_id: int = NO_PRODUCER_ID
) -> TransactionLogValue:
    """Return the Prepare* state of a decided transaction. A client version that bumps epochs gets the next epoch here.

    The coordinator's own last epoch, which a log of older brokers may hold, has no next one: an abort keeps it.
    """
    is_newer = client_version >= EPOCH_BUMPING_VERSION
    bumps = is_newer and (commit or current.producer_epoch <= LAST_EPOCH)
    return _moved(
        current,
        _PREPARE_COMMIT if commit else _PREPARE_ABORT,
        now_ms,
        producer_epoch=current.producer_epoch + bumps,
        last_producer_epoch=current.producer_epoch if is_newer else None,
        next_producer_id=next_producer_id,
        # A transaction without partitions begins and ends with the abort.
        start_ms=now_ms if current.status in IDLE else None,
        client_version=client_version,
    )


def completed(current: TransactionLogValue, now_ms: int) -> TransactionLogValue:
    """Return the Complete* state, after all markers are written. The next producer id, if any, becomes the producer id."""
    rotates = current.next_producer_id != NO_PRODUCER_ID
    is_commit = current.status == _PREPARE_COMMIT
    return _moved(
        current,
        _COMPLETE_COMMIT if is_commit else _COMPLETE_ABORT,
        now_ms,
        producer_id=current.next_producer_id if rotates else None,
        producer_epoch=0 if rotates else None,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
    )


def _moved(
    current: TransactionLogValue,
    target: TransactionState,
    now_ms: int,
    *,
    producer_id: int | None = None,
    producer_epoch: int | None = None,
    partitions: frozenset[tuple[str, int]] | None = None,
    start_ms: int | None = None,
    next_producer_id: int | None = None,
    client_version: int | None = None,
    last_producer_epoch: int | None = None,
) -> TransactionLogValue:
    """Return the value in the ``target`` state, with the given fields replaced. Three times as fast as ``_replace``."""
    check_transition(current.status, target)
    # The fastest way to make one: each transaction goes through five.
    return _new_tuple(
        TransactionLogValue,
        (
            current.producer_id if producer_id is None else producer_id,
            current.producer_epoch if producer_epoch is None else producer_epoch,
            current.timeout_ms,
            target,
            current.partitions if partitions is None else partitions,
            now_ms,
            current.start_ms if start_ms is None else start_ms,
            current.producer_id,
            current.next_producer_id if next_producer_id is None else next_producer_id,
            current.client_transaction_version if client_version is None else client_version,
            current.last_producer_epoch if last_producer_epoch is None else last_producer_epoch,
        ),
    )
