"""The verifications by the transaction coordinator before a produced batch begins a transaction in a partition (KIP-890).

If the transaction is already open in the partition, nothing is asked. Otherwise the batch is appended only if the coordinator
has the partition in the producer's transaction, so that a marker will end it. For a producer of Produce version 12 or later, the
verification also adds the partition. An answer is void if the marker of its transaction has arrived before it. A coordinator that
is still completing the producer's last transaction answers after that (``TransactionCoordinator.write``), or is asked again
(``TransactionPeers``).

A producer gets errors that its version can handle, as chosen by Kafka's ReplicaManager and AddPartitionsToTxnManager.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import NO_PRODUCER_ID, TRANSACTIONAL_MASK, read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator, Verdicts
    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.protocol.produce_request import ProduceRequest
    from odradek.protocol.record_batch import BatchHeader, Buffer
    from odradek.storage.log.producer_state import Verification

_NONE: Final = ErrorCode.NONE
_FIRST_WITH_ABORTABLE: Final = 11
# From this Produce version on, the verification adds the partition to the transaction.
FIRST_ADDING_VERSION: Final = 12
# The transaction version of clients whose Produce adds partitions (KIP-890).
_ADDING_CLIENT_VERSION: Final = 2
# Coordinator errors that older clients would treat as fatal. They retry on NOT_ENOUGH_REPLICAS, which is answered instead.
_TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class BatchVerification:
    """The verification of one batch. ``answer`` is None until it arrives."""

    __slots__ = ("answer", "header", "verification")

    def __init__(self, header: BatchHeader, verification: Verification | None, answer: ErrorCode | None) -> None:
        self.header = header
        self.verification = verification
        self.answer = answer


class TransactionChecks:
    """The verifications for one Produce request, one per batch in order; None if the batch would not begin a transaction."""

    __slots__ = ("_verifications", "_version", "_waiting", "_when_done")

    def __init__(self, version: int) -> None:
        self._version = version
        self._verifications: list[BatchVerification | None] = []
        self._waiting = 0
        self._when_done: Callable[[], None] | None = None

    @property
    def is_done(self) -> bool:
        """Return whether all verifications are answered."""
        return self._waiting == 0

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back with the last answer. At least one must be outstanding."""
        self._when_done = callback

    def ask(
        self,
        coordinator: TransactionCoordinator,
        request: ProduceRequest,
        known: Partitions,
        now_ms: int,
    ) -> None:
        """Ask for the necessary verifications. ``request`` has a transactional id, ``known`` the broker's partitions."""
        adds = self._version >= FIRST_ADDING_VERSION
        transactional_id = request.transactional_id or ""
        # Pending markers of the previous transaction must be written before a verification.
        coordinator.settle(transactional_id)
        # Partitions and their batches by producer id and epoch. Real producers send only one pair.
        asked: dict[tuple[int, int], list[tuple[tuple[str, int], BatchVerification]]] = {}
        of_producer: list[tuple[tuple[str, int], BatchVerification]] = []
        last_id = last_epoch = NO_PRODUCER_ID
        for topic, batches in request.topics:
            partitions = known.named(topic)
            for index, records in batches:
                partition = partitions.get(index)
                batch = _verification(partition, records, adds, now_ms)
                self._verifications.append(batch)
                if partition is None or batch is None or batch.answer is not None:
                    continue
                header = batch.header
                if header.producer_id != last_id or header.producer_epoch != last_epoch:
                    last_id, last_epoch = header.producer_id, header.producer_epoch
                    of_producer = asked.setdefault((last_id, last_epoch), [])
                of_producer.append(((partition.topic, index), batch))
        for (producer_id, epoch), about in asked.items():
            keys = frozenset([key for key, _ in about])
            others = coordinator.others
            if others is not None and not others.coordinates(transactional_id):
                self._waiting += 1
                elsewhere = others.verify(transactional_id, producer_id, epoch, keys, adds=adds)
                elsewhere.when_done(partial(self._answered_each, about))
                continue
            if not adds:
                verdicts = coordinator.verify_partitions(transactional_id, producer_id, epoch, keys)
                for key, batch in about:
                    batch.answer = verdicts[key]
                continue
            verifications = [batch for _, batch in about]
            self._waiting += 1
            reply = coordinator.add_partitions(transactional_id, producer_id, epoch, keys, _ADDING_CLIENT_VERSION)
            reply.when_done(partial(self._answered, verifications))

    def _answered_each(self, about: list[tuple[tuple[str, int], BatchVerification]], verdicts: Verdicts) -> None:
        for key, batch in about:
            batch.answer = verdicts[key]
        self._count_answer()

    def _answered(self, verifications: list[BatchVerification], code: ErrorCode) -> None:
        for batch in verifications:
            batch.answer = code
        self._count_answer()

    def _count_answer(self) -> None:
        self._waiting -= 1
        if not self._waiting and self._when_done is not None:
            # Drop the callback: through a reference cycle, the whole request would be left to the garbage collector.
            when_done, self._when_done = self._when_done, None
            when_done()

    def verification_of(self, number: int) -> BatchVerification | None:
        """Return the verification of a batch, given the number of batches before it in the request."""
        return self._verifications[number]

    def allows(self, batch: BatchVerification | None, partition: Partition) -> bool:
        """Return whether the batch for ``partition`` may begin a transaction. KafkaError if the coordinator refuses."""
        if batch is None or batch.answer is None:
            return False
        verification = batch.verification
        if verification is None:
            raise KafkaError(batch.answer, "the partition could not take the record batch when it arrived")
        if batch.answer != _NONE:
            raise self._refusal(batch.answer)
        header = batch.header
        return partition.require_log().producers.is_verifying(header.producer_id, header.producer_epoch, verification)

    def _refusal(self, code: ErrorCode) -> KafkaError:
        reason = f"the transaction coordinator answered {code.name} for this partition"
        if code in _TRY_AGAIN or (code == ErrorCode.CONCURRENT_TRANSACTIONS and self._version < FIRST_ADDING_VERSION):
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
        if code == ErrorCode.PRODUCER_FENCED:
            return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        if code == ErrorCode.TRANSACTION_ABORTABLE and self._version < _FIRST_WITH_ABORTABLE:
            return KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
        return KafkaError(code, reason)


def _verification(partition: Partition | None, records: Buffer | None, adds: bool, now_ms: int) -> BatchVerification | None:
    """Return the verification of a batch, or None. It has an answer already if the partition itself refuses the batch.

    Such a batch stays refused, whatever becomes of the partition meanwhile: the coordinator was not asked about it.
    """
    try:
        header = read_header(records or b"")
    except MalformedMessage:
        return None
    if header.producer_id < 0 or not header.attributes & TRANSACTIONAL_MASK:
        return None
    try:
        if partition is None:
            return BatchVerification(header, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        producers = partition.require_leader_log().producers
        producer_id, epoch = header.producer_id, header.producer_epoch
        if not producers.needs_verification(producer_id, epoch):
            return None
    except KafkaError as error:
        return BatchVerification(header, None, error.code)
    verification = producers.begin_verification(producer_id, epoch, header.base_sequence, adds, now_ms)
    return BatchVerification(header, verification, None)


class UncheckedTransactions(TransactionChecks):
    """The checks if ``transaction.partition.verification.enable`` is off: every batch may begin a transaction.

    Only for versions before ``FIRST_ADDING_VERSION``: for later ones the coordinator must be asked, as that adds the partition.
    """

    __slots__ = ()

    def verification_of(self, number: int) -> BatchVerification | None:  # noqa: ARG002 - the signature is the class's
        """Return None: there is no verification."""
        return None

    def allows(self, batch: BatchVerification | None, partition: Partition) -> bool:  # noqa: ARG002 - the signature is the class's
        """Return True: every batch is allowed."""
        return True
