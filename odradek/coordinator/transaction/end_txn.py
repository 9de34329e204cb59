"""EndTxn: decides to commit or abort, appended before its answer. Also aborts the transaction of a fenced producer.

Up to version 4 (client version 0) a producer keeps its epoch from one transaction to the next:

    state             commit                       abort
    Ongoing           PrepareCommit                PrepareAbort
    CompleteCommit    done before                  INVALID_TXN_STATE
    CompleteAbort     INVALID_TXN_STATE            done before
    Empty             INVALID_TXN_STATE            INVALID_TXN_STATE

From version 5 on (client version 2, KIP-890) the producer gets the next epoch each time. So the epoch tells whether a request is
a repetition (the previous epoch) or about the next transaction (the current epoch):

    state             commit, repeated             commit              abort, repeated       abort
    Empty             PRODUCER_FENCED              INVALID_TXN_STATE   PRODUCER_FENCED       PrepareAbort
    CompleteCommit    done before                  INVALID_TXN_STATE   INVALID_TXN_STATE     PrepareAbort
    CompleteAbort     INVALID_TXN_STATE            INVALID_TXN_STATE   done before           PrepareAbort

with Ongoing as above. While a change is under way, and so in all of Prepare*, the answer is CONCURRENT_TRANSACTIONS. A newer
client gets it in any case, an older one only after its producer id and epoch have been checked.

Source: ``TransactionCoordinator.endTransaction`` and ``endTransactionWithTV1`` of Apache Kafka.
"""

from typing import Final, TypeVar

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import COMMITTED
from odradek.coordinator.transaction.add_partitions import check_producer, unknown_mapping
from odradek.coordinator.transaction.config import ProducerIdentity
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.states import STATE_NAMES, TransactionState
from odradek.coordinator.transaction.transactions import Transactions
from odradek.coordinator.transaction.transitions import (
    EPOCH_BUMPING_VERSION,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    is_exhausted,
    prepared,
)
from odradek.protocol.coordinator_records import TransactionLogValue
from odradek.protocol.errors import ErrorCode, KafkaError

_new_tuple: Final = tuple.__new__

T = TypeVar("T")

_ONGOING: Final = TransactionState.ONGOING
_ENDED: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
NOBODY: Final = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


def end_txn(
    transactions: Transactions,
    markers: Markers,
    transactional_id: str,
    producer: ProducerIdentity,
    *,
    commit: bool,
    client_version: int,
) -> CoordinatorResult[ProducerIdentity]:
    """Decide on an EndTxn. The response is the producer's new identity, or NOBODY if its epoch is not bumped.

    Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE. HOT.
    """
    bumps = client_version >= EPOCH_BUMPING_VERSION
    if bumps:
        transactions.require_settled(transactional_id)
    # An older client is validated against the committed state before pending changes are checked.
    current = transactions.by_id.get_at(transactional_id, COMMITTED)
    if current is None:
        raise unknown_mapping(transactional_id)
    if bumps:
        is_repeated = _check_bumping_producer(transactional_id, current, producer)
    else:
        check_producer(transactional_id, current, producer)
        transactions.require_settled(transactional_id)
        is_repeated = current.status != _ONGOING
    if current.status != _ONGOING and _is_done(current, commit=commit, bumps=bumps, is_repeated=is_repeated):
        return CoordinatorResult((), ProducerIdentity(current.producer_id, current.producer_epoch) if bumps else NOBODY)
    next_producer_id = transactions.new_producer_id() if bumps and is_exhausted(current.producer_epoch) else NO_PRODUCER_ID
    value = prepared(
        current,
        transactions.clock.now_ms(),
        commit=commit,
        client_version=client_version,
        next_producer_id=next_producer_id,
    )
    response = NOBODY
    if bumps and next_producer_id != NO_PRODUCER_ID:
        response = ProducerIdentity(next_producer_id, 0)
    elif bumps:
        response = _new_tuple(ProducerIdentity, (value.producer_id, value.producer_epoch))
    return _move(transactions, markers, transactional_id, value, response)


def fence(
    transactions: Transactions, markers: Markers, transactional_id: str, current: TransactionLogValue, response: T
) -> CoordinatorResult[T]:
    """Abort an open transaction with a bumped producer epoch, which fences the producer, and answer ``response``."""
    next_producer_id = transactions.new_producer_id() if is_exhausted(current.producer_epoch) else NO_PRODUCER_ID
    value = prepared(
        current,
        transactions.clock.now_ms(),
        commit=False,
        client_version=EPOCH_BUMPING_VERSION,
        next_producer_id=next_producer_id,
    )
    return _move(transactions, markers, transactional_id, value, response)


def _move(
    transactions: Transactions, markers: Markers, transactional_id: str, value: TransactionLogValue, response: T
) -> CoordinatorResult[T]:
    return transactions.move(
        transactional_id,
        value,
        response,
        then=lambda: markers.begin(transactional_id, value),
    )


def _check_bumping_producer(transactional_id: str, current: TransactionLogValue, producer: ProducerIdentity) -> bool:
    """Return whether the request repeats an earlier one. Raises KafkaError if it does not come from the producer."""
    epoch = producer.producer_epoch
    # The producer did not get the answer with its new producer id.
    repeats_overflow = (
        current.previous_producer_id == producer.producer_id and epoch == LAST_EPOCH and current.producer_epoch == 0
    )
    if current.producer_id != producer.producer_id and not repeats_overflow:
        raise unknown_mapping(transactional_id)
    repeats_bump = current.producer_epoch == epoch + 1
    has_ended = current.status in _ENDED
    if epoch != current.producer_epoch and not (has_ended and (repeats_bump or repeats_overflow)):
        raise KafkaError(ErrorCode.PRODUCER_FENCED, f"{transactional_id} is at epoch {current.producer_epoch}, not {epoch}")
    return repeats_bump or repeats_overflow


def _is_done(current: TransactionLogValue, *, commit: bool, bumps: bool, is_repeated: bool) -> bool:
    """For Empty and Complete*: return True if the request was carried out before, False if it must be now."""
    state = TransactionState(current.status)
    ended = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
    if is_repeated and state is ended:
        return True
    if bumps and not commit and not is_repeated:
        return False
    asked = "commit" if commit else "abort"
    raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"cannot {asked} a transaction in state {STATE_NAMES[state]}")
