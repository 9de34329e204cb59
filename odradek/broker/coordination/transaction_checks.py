"""Asking the transaction coordinator before a produced batch begins a transaction in a partition (KIP-890).

A batch goes on in a transaction that is open in its partition without anybody being asked. One that would begin it there is
appended only if the coordinator has the partition in the producer's transaction, so that there will be a marker to end it; a
producer of Produce version 12 or later leaves it to this question to add the partition. An answer is worth nothing any more when
the marker of the transaction that it was about has arrived before it. A coordinator that is still completing the producer's last
transaction answers when that is done (``TransactionCoordinator.write``), or is asked again (``TransactionPeers``).

Errors are those that a producer of its version knows what to do about, as Kafka's ReplicaManager and AddPartitionsToTxnManager
choose them.
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
# From this Produce version on the question adds the partition to the transaction.
FIRST_THAT_ADDS: Final = 12
# The transaction version of clients that do (KIP-890).
_CLIENT_THAT_ADDS: Final = 2
# Errors of the coordinator that older clients would take for the end; what they do on this one is try again.
_TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Question:
    """About one batch. ``answer`` is None until there is one."""

    __slots__ = ("answer", "header", "verification")

    def __init__(self, header: BatchHeader, verification: Verification | None, answer: ErrorCode | None) -> None:
        self.header = header
        self.verification = verification
        self.answer = answer


class TransactionChecks:
    """The questions of one Produce request: of each batch, in order, None where its transaction would not begin with it."""

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
        """Call back with the last answer, which must be outstanding."""
        self._when_done = callback

    def ask(
        self,
        coordinator: TransactionCoordinator,
        request: ProduceRequest,
        known: Partitions,
        now_ms: int,
    ) -> None:
        """Ask whatever has to be asked for ``request``, which has a transactional id; ``known`` has the broker's partitions."""
        adds = self._version >= FIRST_THAT_ADDS
        transactional_id = request.transactional_id or ""
        # The markers of the transaction before, if they are yet to be written, are not to arrive after a question was asked.
        coordinator.settle(transactional_id)
        # By producer id and epoch, of which there is one in what producers send: partitions, and the questions about them.
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
            # Let go of who knows these checks, or all of the request would be left to the garbage collector.
            when_done, self._when_done = self._when_done, None
            when_done()

    def question(self, number: int) -> Question | None:
        """That about the batch with so many before it in the request."""
        return self._questions[number]

    def allows(self, question: Question | None, partition: Partition) -> bool:
        """Return whether the batch for ``partition`` may begin a transaction. KafkaError where the coordinator says no."""
        if question is None or question.answer is None:
            return False
        if question.answer != _NONE:
            raise self._refusal(question.answer)
        verification = question.verification
        return verification is not None and partition.require_log().producers.is_verifying(
            question.header.producer_id, verification
        )

    def _refusal(self, code: ErrorCode) -> KafkaError:
        reason = f"the coordinator says {code.name} of this partition"
        if code in _TRY_AGAIN or (code == ErrorCode.CONCURRENT_TRANSACTIONS and self._version < FIRST_THAT_ADDS):
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
        if code == ErrorCode.PRODUCER_FENCED:
            return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        if code == ErrorCode.TRANSACTION_ABORTABLE and self._version < _FIRST_WITH_ABORTABLE:
            return KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
        return KafkaError(code, reason)


def _question(partition: Partition, records: Buffer | None, adds: bool, now_ms: int) -> Question | None:
    """The question about a batch, if there is one; answered already where the partition knows that it is refused."""
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
    """Where ``transaction.partition.verification.enable`` is off: every batch may begin a transaction.

    Only for versions before ``FIRST_THAT_ADDS``: who leaves adding the partition to the question has it asked all the same.
    """

    __slots__ = ()

    def question(self, number: int) -> Question | None:  # noqa: ARG002 - the signature is the class's
        """None."""
        return None

    def allows(self, question: Question | None, partition: Partition) -> bool:  # noqa: ARG002 - the signature is the class's
        """Always."""
        return True
