"""InitProducerId with a transactional id: the caller becomes its producer, and the previous producer is fenced.

    pending, Prepare*              CONCURRENT_TRANSACTIONS
    caller is not the producer     PRODUCER_FENCED
    Empty, Complete*               the epoch is bumped; where none is left, a new producer id with epoch 0
    Ongoing                        the open transaction is aborted with its producer fenced, and the answer is
                                   CONCURRENT_TRANSACTIONS: when the client comes again, it gets an epoch of its own

A caller that names its producer id and epoch (KIP-360) must be the last one that got an answer. One that repeats a request
because it missed the answer names the previous epoch, and gets the answer again.

Source: ``TransactionCoordinator.prepareInitProducerIdTransit`` of Apache Kafka.
"""

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.transaction.config import ProducerIdentity
from odradek.coordinator.transaction.end_txn import fence
from odradek.coordinator.transaction.markers import Markers
from odradek.coordinator.transaction.states import PREPARED, TransactionState
from odradek.coordinator.transaction.transactions import Transactions, Unsettled
from odradek.coordinator.transaction.transitions import NO_EPOCH, NO_PRODUCER_ID, created, initialized, is_exhausted
from odradek.protocol.coordinator_records import TransactionLogValue
from odradek.protocol.errors import ErrorCode, KafkaError

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
    state = TransactionState(current.status)
    if state in PREPARED:
        raise Unsettled(state)
    if state is TransactionState.ONGOING:
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
