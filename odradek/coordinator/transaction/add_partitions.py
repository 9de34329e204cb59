"""AddPartitionsToTxn and AddOffsetsToTxn add partitions to a transaction, and begin one if none is open.

Verification (KIP-890) asks whether partitions are in the transaction, and changes nothing.

Source: ``TransactionCoordinator.handleAddPartitionsToTransaction``, ``handleVerifyPartitionsInTransaction`` of Apache Kafka.
"""

from typing import Final

from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.transaction.config import ProducerIdentity
from odradek.coordinator.transaction.states import PREPARED, TransactionState
from odradek.coordinator.transaction.transactions import Transactions, Unsettled
from odradek.coordinator.transaction.transitions import with_partitions
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
    state = current.status
    if state in PREPARED:
        raise Unsettled(state)
    if state == _ONGOING and partitions <= current.partitions:
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
        raise Unsettled(current.status)
    missing = partitions - current.partitions
    newest = transactions.by_id.get(transactional_id)
    if newest is not None and not missing.isdisjoint(newest.partitions):
        raise Unsettled(newest.status)
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
