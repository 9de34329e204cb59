"""The questions to the transaction coordinator before a produced batch begins a transaction in a partition (KIP-890).

If the transaction is already open in the partition, nothing is asked. Otherwise the batch is appended only if the coordinator
has the partition in the producer's transaction, so that a marker will end it. For a producer of Produce version 12 or later, the
question also adds the partition. An answer is void if the marker of its transaction has arrived before it. A coordinator that
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
# From this Produce version on, the question adds the partition to the transaction.
FIRST_THAT_ADDS: Final = 12
# The transaction version of clients whose Produce adds partitions (KIP-890).
_CLIENT_THAT_ADDS: Final = 2
# Coordinator errors that older clients would treat as fatal. They retry on NOT_ENOUGH_REPLICAS, which is answered instead.
_TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Question:
    """The question about one batch. ``answer`` is None until it arrives."""

    __slots__ = ("answer", "header", "verification")

    def __init__(self, header: BatchHeader, verification: Verification | None, answer: ErrorCode | None) -> None:
        self.header = header
        self.verification = verification
        self.answer = answer


class TransactionChecks:
    """The questions of one Produce request, one per batch in order; None if the batch would not begin a transaction."""

    __slots__ = ("_questions", "_version", "_waiting", "_when_done")

    def __init__(self, version: int) -> None:
        self._version = version
        self._questions: list[Question | None] = []
        self._waiting = 0
        self._when_done: Callable[[], None] | None = None

    @property
    def is_done(self) -> bool:
        """Return whether all questions are answered."""
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
        """Ask the necessary questions for ``request``, which has a transactional id. ``known`` has the broker's partitions."""
        adds = self._version >= FIRST_THAT_ADDS
        transactional_id = request.transactional_id or ""
        # Pending markers of the previous transaction must be written before a question is asked.
        coordinator.settle(transactional_id)
        # Partitions and their questions by producer id and epoch. Real producers send only one pair.
        asked: dict[tuple[int, int], list[tuple[tuple[str, int], Question]]] = {}
        of_producer: list[tuple[tuple[str, int], Question]] = []
        last_id = last_epoch = NO_PRODUCER_ID
        for topic, batches in request.topics:
            partitions = known.named(topic)
            for index, records in batches:
                partition = partitions.get(index)
                question = None if partition is None else _question(partition, records, adds, now_ms)
                self._questions.append(question)
                if partition is None or question is None or question.answer is not None:
                    continue
                header = question.header
                if header.producer_id != last_id or header.producer_epoch != last_epoch:
                    last_id, last_epoch = header.producer_id, header.producer_epoch
                    of_producer = asked.setdefault((last_id, last_epoch), [])
                of_producer.append(((partition.topic, index), question))
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
                for key, question in about:
                    question.answer = verdicts[key]
                continue
            questions = [question for _, question in about]
            self._waiting += 1
            reply = coordinator.add_partitions(transactional_id, producer_id, epoch, keys, _CLIENT_THAT_ADDS)
            reply.when_done(partial(self._answered, questions))

    def _answered_each(self, about: list[tuple[tuple[str, int], Question]], verdicts: Verdicts) -> None:
        for key, question in about:
            question.answer = verdicts[key]
        self._one_less()

    def _answered(self, questions: list[Question], code: ErrorCode) -> None:
        for question in questions:
            question.answer = code
        self._one_less()

    def _one_less(self) -> None:
        self._waiting -= 1
        if not self._waiting and self._when_done is not None:
            # Drop the callback: through a reference cycle, the whole request would be left to the garbage collector.
            when_done, self._when_done = self._when_done, None
            when_done()

    def question(self, number: int) -> Question | None:
        """Return the question about a batch, given the number of batches before it in the request."""
        return self._questions[number]

    def allows(self, question: Question | None, partition: Partition) -> bool:
        """Return whether the batch for ``partition`` may begin a transaction. KafkaError if the coordinator refuses."""
        if question is None or question.answer is None:
            return False
        if question.answer != _NONE:
            raise self._refusal(question.answer)
        verification = question.verification
        return verification is not None and partition.require_log().producers.is_verifying(
            question.header.producer_id, verification
        )

    def _refusal(self, code: ErrorCode) -> KafkaError:
        reason = f"the transaction coordinator answered {code.name} for this partition"
        if code in _TRY_AGAIN or (code == ErrorCode.CONCURRENT_TRANSACTIONS and self._version < FIRST_THAT_ADDS):
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
        if code == ErrorCode.PRODUCER_FENCED:
            return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        if code == ErrorCode.TRANSACTION_ABORTABLE and self._version < _FIRST_WITH_ABORTABLE:
            return KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
        return KafkaError(code, reason)


def _question(partition: Partition, records: Buffer | None, adds: bool, now_ms: int) -> Question | None:
    """Return the question about a batch, or None. It has an answer already if the partition itself refuses the batch."""
    log = partition.log
    if log is None:
        return None
    try:
        header = read_header(records or b"")
    except MalformedMessage:
        return None
    if header.producer_id < 0 or not header.attributes & TRANSACTIONAL_MASK:
        return None
    try:
        producers = log.producers
        if not producers.needs_verification(header):
            return None
    except KafkaError as error:
        return Question(header, None, error.code)
    return Question(header, producers.begin_verification(header, adds, now_ms), None)


class UncheckedTransactions(TransactionChecks):
    """The checks if ``transaction.partition.verification.enable`` is off: every batch may begin a transaction.

    Only for versions before ``FIRST_THAT_ADDS``: for later ones the question must be asked, as it adds the partition.
    """

    __slots__ = ()

    def question(self, number: int) -> Question | None:  # noqa: ARG002 - the signature is the class's
        """Return None: there is no question."""
        return None

    def allows(self, question: Question | None, partition: Partition) -> bool:  # noqa: ARG002 - the signature is the class's
        """Return True: every batch is allowed."""
        return True
