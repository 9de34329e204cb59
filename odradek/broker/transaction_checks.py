"""Asking the transaction coordinator before a produced batch begins a transaction in a partition (KIP-890).

A batch goes on in a transaction that is open in its partition without anybody being asked. One that would begin it there is
appended only if the coordinator has the partition in the producer's transaction, so that there will be a marker to end it; a
producer of Produce version 12 or later leaves it to this question to add the partition. An answer is worth nothing any more when
a marker has arrived before it: the transaction that it was about has ended.

Errors are those that a producer of its version knows what to do about, as Kafka's ReplicaManager and AddPartitionsToTxnManager
choose them.

Left out: waiting here for the producer's last transaction to be over (``add.partitions.to.txn.retry.backoff.ms``): the client
asks again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import NO_PRODUCER_ID, TRANSACTIONAL_MASK, read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.partition import Partition
    from odradek.broker.transaction_coordinator import TransactionCoordinator
    from odradek.protocol.produce_request import ProduceRequest
    from odradek.protocol.record_batch import BatchHeader, Buffer
    from odradek.storage.producer_state import Verification

# A topic as the request names it, and a partition's index.
Key: TypeAlias = "tuple[str | bytes, int]"

_NONE: Final = ErrorCode.NONE
_FIRST_WITH_ABORTABLE: Final = 11
_FIRST_THAT_ADDS: Final = 12
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
    """About one batch, the last one for its partition. ``answer`` is None until there is one."""

    __slots__ = ("answer", "header", "verification")

    def __init__(self, header: BatchHeader, verification: Verification | None, answer: ErrorCode | None) -> None:
        self.header = header
        self.verification = verification
        self.answer = answer


class TransactionChecks:
    """The questions of one Produce request, one for each partition that its transaction would begin in."""

    __slots__ = ("_knows_headers", "_questions", "_version", "_waiting", "_when_done")

    def __init__(self, version: int) -> None:
        self._version = version
        self._questions: dict[Key, Question] = {}
        # Not where a partition is in the request more than once.
        self._knows_headers = True
        self._waiting = 0
        self._when_done: Callable[[], None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether all questions are answered."""
        return self._waiting == 0

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back with the last answer, which must be outstanding."""
        self._when_done = callback

    def ask(
        self,
        coordinator: TransactionCoordinator,
        request: ProduceRequest,
        of_topic: Callable[[Any], list[Partition]],
        now_ms: int,
    ) -> None:
        """Ask whatever has to be asked for ``request``, which has a transactional id; ``of_topic`` has partitions by topic."""
        adds = self._version >= _FIRST_THAT_ADDS
        # By producer id and epoch, of which there is one in what producers send.
        asked: dict[tuple[int, int], dict[tuple[str, int], Question]] = {}
        of_producer: dict[tuple[str, int], Question] = {}
        last_id = last_epoch = NO_PRODUCER_ID
        for topic, batches in request.topics:
            partitions = of_topic(topic)
            count = len(partitions)
            for index, records in batches:
                partition = partitions[index] if 0 <= index < count else None
                question = self._question((topic, index), partition, records, adds, now_ms)
                if question is None or partition is None:
                    continue
                header = question.header
                if header.producer_id != last_id or header.producer_epoch != last_epoch:
                    last_id, last_epoch = header.producer_id, header.producer_epoch
                    of_producer = asked.setdefault((last_id, last_epoch), {})
                of_producer[partition.topic, index] = question
        transactional_id = request.transactional_id or ""
        for (producer_id, epoch), questions in asked.items():
            keys = frozenset(questions)
            if not adds:
                verdicts = coordinator.verify_partitions(transactional_id, producer_id, epoch, keys)
                for place, code in verdicts.items():
                    questions[place].answer = code
                continue
            reply = coordinator.add_partitions(transactional_id, producer_id, epoch, keys, _CLIENT_THAT_ADDS)
            if reply.done:
                for question in questions.values():
                    question.answer = reply.response
            else:
                self._waiting += 1
                reply.when_done(partial(self._answered, list(questions.values())))

    def _question(
        self, key: Key, partition: Partition | None, records: Buffer | None, adds: bool, now_ms: int
    ) -> Question | None:
        """The question about a batch that is yet to be answered, if there is one."""
        try:
            header = read_header(records or b"")
        except MalformedMessage:
            return None
        if header.producer_id < 0 or not header.attributes & TRANSACTIONAL_MASK:
            return None
        if key in self._questions:
            self._knows_headers = False
        if partition is None or partition.log is None:
            return None
        try:
            producers = partition.log.producers
            if not producers.needs_verification(header):
                return None
        except KafkaError as error:
            self._questions[key] = Question(header, None, error.code)
            return None
        question = self._questions[key] = Question(header, producers.begin_verification(header, adds, now_ms), None)
        return question

    def _answered(self, questions: list[Question], code: ErrorCode) -> None:
        for question in questions:
            question.answer = code
        self._waiting -= 1
        if not self._waiting and self._when_done is not None:
            # Let go of who knows these checks, or all of the request would be left to the garbage collector.
            when_done, self._when_done = self._when_done, None
            when_done()

    def question(self, key: Key) -> Question | None:
        """The last one about a batch for this partition."""
        return self._questions.get(key)

    def header(self, question: Question | None) -> BatchHeader | None:
        """That of the batch, where there was a question about it and about no other for its partition."""
        return question.header if question is not None and self._knows_headers else None

    def allows(self, question: Question | None, partition: Partition) -> bool:
        """Whether the batch for ``partition`` may begin a transaction. KafkaError where the coordinator says no."""
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
        if code in _TRY_AGAIN or (code == ErrorCode.CONCURRENT_TRANSACTIONS and self._version < _FIRST_THAT_ADDS):
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
        if code == ErrorCode.PRODUCER_FENCED:
            return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        if code == ErrorCode.TRANSACTION_ABORTABLE and self._version < _FIRST_WITH_ABORTABLE:
            return KafkaError(ErrorCode.INVALID_TXN_STATE, reason)
        return KafkaError(code, reason)


class UncheckedTransactions(TransactionChecks):
    """Where ``transaction.partition.verification.enable`` is off: every batch may begin a transaction."""

    __slots__ = ()

    def allows(self, question: Question | None, partition: Partition) -> bool:  # noqa: ARG002 - the signature is the class's
        """Always."""
        return True
