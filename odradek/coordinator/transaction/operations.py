"""The operations of a transactional producer: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn.

InitProducerId with a transactional id: the caller becomes its producer, and the previous producer is fenced.

    pending, Prepare*              CONCURRENT_TRANSACTIONS
    caller is not the producer     PRODUCER_FENCED
    Empty, Complete*               the epoch is bumped; where none is left, a new producer id with epoch 0
    Ongoing                        the open transaction is aborted with its producer fenced, and the answer is
                                   CONCURRENT_TRANSACTIONS: when the client comes again, it gets an epoch of its own

A caller that names its producer id and epoch (KIP-360) must be the last one that got an answer. One that repeats a request
because it missed the answer names the previous epoch, and gets the answer again.

Source: ``TransactionCoordinator.prepareInitProducerIdTransit`` of Apache Kafka.

AddPartitionsToTxn and AddOffsetsToTxn add partitions to a transaction, and begin one if none is open.

Verification (KIP-890) asks whether partitions are in the transaction, and changes nothing.

Source: ``TransactionCoordinator.handleAddPartitionsToTransaction``, ``handleVerifyPartitionsInTransaction`` of Apache Kafka.

EndTxn: decides to commit or abort, appended before its answer. Also aborts the transaction of a fenced producer.

Up to version 4 (client version 0) a producer keeps its epoch from one transaction to the next:

    state             commit                       abort
    Ongoing           PrepareCommit                PrepareAbort
    CompleteCommit    done before                  INVALID_TXN_STATE
    CompleteAbort     INVALID_TXN_STATE            done before
    Empty             INVALID_TXN_STATE            INVALID_TXN_STATE

From version 5 on (client version 2, KIP-890) the producer gets the next epoch each time. So the epoch tells whether a request
is a repetition (the previous epoch) or about the next transaction (the current epoch):

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
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.states import (
    EPOCH_BUMPING_VERSION,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    STATE_NAMES,
    TransactionState,
    created,
    initialized,
    is_exhausted,
    prepared,
    with_partitions,
)
from odradek.coordinator.transaction.transactions import ConcurrentTransactions, ProducerIdentity, Transactions
from odradek.protocol.coordinator_records import TransactionLogValue
from odradek.protocol.errors import ErrorCode, KafkaError

_ONGOING: Final = TransactionState.ONGOING


def add_partitions(
    transactions: Transactions,
    transactional_id: str,
    producer: ProducerIdentity,
    partitions: frozenset[tuple[str, int]],
    client_version: int,
) -> CoordinatorResult[None]:
    """Decide on an AddPartitionsToTxn whose partitions exist.

    Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS. HOT.
    """
    # Check this first: a producer with exhausted epochs may already send the id that it is about to get.
    transactions.require_settled(transactional_id)
    current = transactions.by_id.get(transactional_id)
    if current is None:
        raise unknown_mapping(transactional_id)
    check_producer(transactional_id, current, producer)
    if current.status == _ONGOING and partitions <= current.partitions:
        return CoordinatorResult((), None)
    value = with_partitions(current, partitions, client_version, transactions.clock.now_ms())
    return transactions.move(transactional_id, value, None)


def verify_partitions(
    transactions: Transactions,
    transactional_id: str,
    producer: ProducerIdentity,
    partitions: frozenset[tuple[str, int]],
    at_offset: int,
) -> dict[tuple[str, int], ErrorCode]:
    """Return NONE for each partition in the open transaction as of ``at_offset``, TRANSACTION_ABORTABLE for the others.

    A partition whose addition is not committed yet raises CONCURRENT_TRANSACTIONS. Its producer can have continued only at the
    next coordinator, while this one is cut off from it. Kafka answers TRANSACTION_ABORTABLE.

    Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    current = transactions.by_id.get_at(transactional_id, at_offset)
    if current is None:
        raise unknown_mapping(transactional_id)
    check_producer(transactional_id, current, producer)
    if current.status in PREPARED:
        raise ConcurrentTransactions(current.status)
    missing = partitions - current.partitions
    newest = transactions.by_id.get(transactional_id)
    if newest is not None and not missing.isdisjoint(newest.partitions):
        raise ConcurrentTransactions(newest.status)
    return {partition: ErrorCode.TRANSACTION_ABORTABLE if partition in missing else ErrorCode.NONE for partition in partitions}


def check_producer(transactional_id: str, current: TransactionLogValue, producer: ProducerIdentity) -> None:
    """Raise INVALID_PRODUCER_ID_MAPPING if the producer id is another one, PRODUCER_FENCED if the epoch is."""
    if current.producer_id != producer.producer_id:
        raise unknown_mapping(transactional_id)
    if current.producer_epoch != producer.producer_epoch:
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED, f"{transactional_id} is at epoch {current.producer_epoch}, not {producer.producer_epoch}"
        )


def unknown_mapping(transactional_id: str) -> KafkaError:
    """Return the error for a producer id that the transactional id does not have."""
    return KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id} has another producer id")


_new_tuple: Final = tuple.__new__

T = TypeVar("T")

_ENDED: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
NO_PRODUCER: Final = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


def end_txn(
    transactions: Transactions,
    markers: Markers,
    transactional_id: str,
    producer: ProducerIdentity,
    *,
    commit: bool,
    client_version: int,
) -> CoordinatorResult[ProducerIdentity]:
    """Decide on an EndTxn. The response is the producer's new identity, or NO_PRODUCER if its epoch is not bumped.

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
        return CoordinatorResult((), ProducerIdentity(current.producer_id, current.producer_epoch) if bumps else NO_PRODUCER)
    next_producer_id = transactions.new_producer_id() if bumps and is_exhausted(current.producer_epoch) else NO_PRODUCER_ID
    value = prepared(
        current,
        transactions.clock.now_ms(),
        commit=commit,
        client_version=client_version,
        next_producer_id=next_producer_id,
    )
    response = NO_PRODUCER
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


Outcome = ProducerIdentity | KafkaError


def init_producer_id(
    transactions: Transactions, markers: Markers, transactional_id: str, timeout_ms: int, expected: ProducerIdentity
) -> CoordinatorResult[Outcome]:
    """Decide on an InitProducerId whose timeout has been checked. ``expected`` is the caller's identity, or -1.

    The response is the producer id and epoch, or an error that is answered after records have been written. Raises KafkaError.
    """
    now_ms = transactions.clock.now_ms()
    transactions.require_settled(transactional_id)
    current = transactions.by_id.get(transactional_id)
    if current is None:
        value = created(transactions.new_producer_id(), timeout_ms, now_ms)
        return transactions.move(transactional_id, value, ProducerIdentity(value.producer_id, 0))
    if not _is_known(current, expected):
        raise _fenced(transactional_id, current)
    if current.status == _ONGOING:
        # Answer at once and let the caller retry: its view of its transaction is outdated.
        error = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the open transaction must be aborted first")
        return fence(transactions, markers, transactional_id, current, error)
    value = _next(transactions, transactional_id, current, timeout_ms, expected, now_ms)
    return transactions.move(transactional_id, value, ProducerIdentity(value.producer_id, value.producer_epoch))


def _is_known(current: TransactionLogValue, expected: ProducerIdentity) -> bool:
    if expected.producer_id in (NO_PRODUCER_ID, current.producer_id):
        return True
    # The producer's epochs were exhausted, and it may have missed the answer with its new id.
    return expected.producer_id == current.previous_producer_id and is_exhausted(expected.producer_epoch)


def _next(
    transactions: Transactions,
    transactional_id: str,
    current: TransactionLogValue,
    timeout_ms: int,
    expected: ProducerIdentity,
    now_ms: int,
) -> TransactionLogValue:
    epoch = current.producer_epoch
    is_anybody = expected.producer_id == NO_PRODUCER_ID
    if is_anybody or expected.producer_epoch == epoch:
        last_epoch = NO_EPOCH if is_anybody else epoch
        if is_exhausted(epoch):
            producer_id = transactions.new_producer_id()
            return initialized(current, timeout_ms, now_ms, epoch=0, last_epoch=last_epoch, producer_id=producer_id)
        return initialized(current, timeout_ms, now_ms, epoch=epoch + 1, last_epoch=last_epoch)
    if expected.producer_epoch == current.last_producer_epoch:
        return initialized(current, timeout_ms, now_ms, epoch=epoch, last_epoch=current.last_producer_epoch)
    raise _fenced(transactional_id, current)


def _fenced(transactional_id: str, current: TransactionLogValue) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"{transactional_id} has producer id {current.producer_id}, epoch {current.producer_epoch}",
    )
