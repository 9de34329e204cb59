"""The dead-letter queues of share groups: a topic for records that the group could not process (KIP-1191).

A record goes there if a member rejects it, or if it reaches the delivery count limit. The dead letter says in its headers which
record it was, and why; with ``errors.deadletterqueue.copy.record.enable`` it has the record's key and value as well:

    __dlq.errors.topic, .partition, .offset    the record
    __dlq.errors.group                         the share group
    __dlq.errors.delivery.count                how often it was delivered
    __dlq.errors.message                       the reason

Partition p of a topic goes to partition p modulo the number of partitions of the dead-letter topic. A missing topic is created if
``errors.deadletterqueue.auto.create.topics.enable`` says so. Letters that cannot be written are lost: their records are archived
all the same, as in Kafka, and the log has a line.

Kafka's classes are DefaultShareGroupDLQManager, ShareGroupDLQStateManager and ShareGroupDLQRecordFetcher.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from odradek.broker.replica.delayed_produce import DelayedProduce
from odradek.broker.share.in_flight import DeadLetterCause
from odradek.client.node_client import ExponentialBackoff
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from odradek.timing.reply import Reply, replied

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from odradek.broker.replica.partitions import Partitions
    from odradek.broker.share.share_group_configs import ShareGroupConfigs
    from odradek.broker.share.share_partition import DeadLetter
    from odradek.controller.metadata.decisions import TopicResult
    from odradek.controller.metadata.image import MetadataImage
    from odradek.timing.timer import DelayedOperation, Purgatory, Timer

_REASONS: Final = {
    DeadLetterCause.CLIENT_REJECT: "Offset rejected by client.",
    DeadLetterCause.DELIVERY_COUNT_EXCEEDED: "Offset delivery count exceeded the threshold.",
}
# The configs of a dead-letter topic that is created here.
TOPIC_CONFIGS: Final = (("errors.deadletterqueue.group.enable", "true"), ("message.timestamp.type", "CreateTime"))
_ALL_IN_SYNC: Final = -1
_PRODUCE_TIMEOUT_MS: Final = 30_000
_BACKOFF_MS: Final = 1_000
_MAX_BACKOFF_MS: Final = 30_000
_MAX_ATTEMPTS: Final = 5
_MAX_READ_BYTES: Final = 1024 * 1024
# The most bytes of a record beside key, value and headers, and of a header beside its name and value.
_RECORD_OVERHEAD: Final = 30
_HEADER_OVERHEAD: Final = 10
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class OtherLeaders(Protocol):
    """The leaders of partitions on other brokers."""

    def produce(self, node_id: int, topic: str, partition: int, batch: bytes) -> Reply[KafkaError | None]:
        """Have a broker append a batch, with acks=all."""


class DeadLetterServices(NamedTuple):
    """The parts of the broker that write dead letters. ``create_topics`` creates topics with TOPIC_CONFIGS."""

    node_id: int
    partitions: Partitions
    image: MetadataImage
    produce_purgatory: Purgatory[DelayedOperation]
    timer: Timer
    random: Random
    create_topics: Callable[[list[str]], Reply[list[TopicResult] | KafkaError]]
    others: OtherLeaders | None


class _Writing:
    """A dead letter that is being written, from ``next_offset`` on. ``attempts`` counts failures in a row."""

    __slots__ = ("attempts", "letter", "next_offset", "reply")

    def __init__(self, letter: DeadLetter) -> None:
        self.letter = letter
        self.next_offset = letter.first_offset
        self.attempts = 0
        self.reply: Reply[KafkaError | None] = Reply()


class ShareGroupDeadLetterQueue:
    """Writes dead letters, with Kafka's retries. Loop thread only."""

    def __init__(self, services: DeadLetterServices, configs: ShareGroupConfigs) -> None:
        self._services = services
        self._configs = configs
        self._backoff = ExponentialBackoff(_BACKOFF_MS, _MAX_BACKOFF_MS, services.random)
        # For metrics: batches written, batches that could not be written, and dead letters, by group.
        self.written: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    def enqueue(self, letter: DeadLetter) -> Reply[KafkaError | None]:
        """Write the records. The reply has the error if this is not possible; INVALID_CONFIG if the topic may not be used."""
        writing = _Writing(letter)
        self._go_on(writing)
        return writing.reply

    def _go_on(self, writing: _Writing) -> None:
        """Create the topic, or write the next batch."""
        image = self._services.image
        name = self._configs.dead_letter_topic(writing.letter.key.group_id)
        reason = self._configs.dead_letter_refusal(name)
        if reason:
            self._fail(writing, KafkaError(ErrorCode.INVALID_CONFIG, reason))
        elif name in image.topics:
            self._write(writing, name)
        else:
            self._services.create_topics([name]).when_done(partial(self._created, writing, name))

    def _created(self, writing: _Writing, name: str, outcome: list[TopicResult] | KafkaError) -> None:
        error = outcome if isinstance(outcome, KafkaError) else next((each.error for each in outcome if each.error), None)
        if error is None and name in self._services.image.topics:
            self._write(writing, name)
        else:
            self._retry(writing, error or KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{name} is being created"))

    def _write(self, writing: _Writing, name: str) -> None:
        services = self._services
        topic = services.image.topics[name]
        index = writing.letter.key.partition % len(topic.partitions)
        records = self._records(writing, self._configs.max_message_bytes(name))
        batch = build_batch(records)
        leader = topic.partitions[index].leader
        if leader == services.node_id:
            reply = self._append(name, index, batch)
        elif services.others is None or leader < 0:
            reply = replied(KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{name}-{index} has no leader"))
        else:
            reply = services.others.produce(leader, name, index, batch)
        reply.when_done(partial(self._written, writing, len(records)))

    def _written(self, writing: _Writing, record_count: int, error: KafkaError | None) -> None:
        if error is not None:
            self._retry(writing, error)
            return
        letter = writing.letter
        self.written[letter.key.group_id] = self.written.get(letter.key.group_id, 0) + record_count
        writing.attempts = 0
        writing.next_offset += record_count
        if writing.next_offset > letter.last_offset:
            writing.reply.complete(None)
        else:
            self._go_on(writing)

    def _retry(self, writing: _Writing, error: KafkaError) -> None:
        writing.attempts += 1
        if error.code not in _RETRIABLE or writing.attempts >= _MAX_ATTEMPTS:
            self._fail(writing, error)
        else:
            self._services.timer.call_after(self._backoff.delay_ms(writing.attempts), lambda: self._go_on(writing))

    def _fail(self, writing: _Writing, error: KafkaError) -> None:
        group_id = writing.letter.key.group_id
        self.failed[group_id] = self.failed.get(group_id, 0) + 1
        writing.reply.complete(error)

    def _append(self, name: str, index: int, batch: bytes) -> Reply[KafkaError | None]:
        """Append to a partition that this broker leads, and wait until the in-sync replicas have the records."""
        services = self._services
        clock = services.timer.clock
        try:
            partition = services.partitions.require(name, index)
            partition.require_enough_replicas()
            info = partition.append(batch, clock.now_ms())
        except KafkaError as error:
            return replied(error)
        reply: Reply[KafkaError | None] = Reply()

        def respond(codes: list[ErrorCode]) -> None:
            reply.complete(KafkaError(codes[0]) if codes[0] else None)

        deadline_ms = clock.monotonic_ms() + _PRODUCE_TIMEOUT_MS
        operation = DelayedProduce(deadline_ms, [(partition, info.last_offset)], _ALL_IN_SYNC, respond)
        services.produce_purgatory.try_complete_else_watch(operation, [partition])
        return reply

    # ----------------------------------------------------------------------------------------------------------- records

    def _records(self, writing: _Writing, max_bytes: int) -> list[Record]:
        """Return the next dead letters, as many as one batch of the topic may have, but at least one."""
        letter = writing.letter
        originals, last_offset = self._originals(writing, max_bytes)
        now_ms = self._services.timer.clock.now_ms()
        records: list[Record] = []
        size = HEADER_SIZE
        for offset in range(writing.next_offset, last_offset + 1):
            original = originals.get(offset)
            headers = self._headers(letter, offset)
            key, value = (None, None) if original is None else (original.key, original.value)
            record_bytes = _RECORD_OVERHEAD + sum(len(header) + len(text or b"") + _HEADER_OVERHEAD for header, text in headers)
            if HEADER_SIZE + record_bytes + len(key or b"") + len(value or b"") > max_bytes:
                # Too large for the topic: its headers tell of it.
                key = value = None
            record_bytes += len(key or b"") + len(value or b"")
            if records and size + record_bytes > max_bytes:
                break
            records.append(Record(timestamp=now_ms, key=key, value=value, headers=headers))
            size += record_bytes
        return records

    def _headers(self, letter: DeadLetter, offset: int) -> tuple[tuple[str, bytes | None], ...]:
        topic = self._services.image.topics_by_id.get(letter.key.topic_id)
        values = {
            "topic": str(letter.key.topic_id) if topic is None else topic.name,
            "partition": letter.key.partition,
            "offset": offset,
            "group": letter.key.group_id,
            "delivery.count": letter.delivery_count,
            "message": _REASONS[letter.cause],
        }
        return tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in values.items())

    def _originals(self, writing: _Writing, max_bytes: int) -> tuple[dict[int, Record], int]:
        """Return the records to copy, and the last offset of this round. Unreadable records are told by their headers only."""
        letter = writing.letter
        if not self._configs.copies_dead_letters(letter.key.group_id):
            return {}, letter.last_offset
        found: dict[int, Record] = {}
        last_offset = letter.last_offset
        source = self._services.partitions.find_by_id(letter.key.topic_id, letter.key.partition)
        try:
            if isinstance(source, KafkaError):
                raise source
            log = source.require_leader_log()
            read = log.read(writing.next_offset, _MAX_READ_BYTES, upper_offset=source.high_watermark, min_one_batch=True)
            data = b"" if read is None else read.read()
            for position, header in iter_batches(data):
                if header.base_offset > letter.last_offset or position + header.size_bytes > len(data):
                    break
                last_offset = min(header.last_offset, letter.last_offset)
                # A batch that cannot be unpacked, or is too large unpacked, does not concern the next ones.
                with suppress(MalformedMessage):
                    found.update({record.offset: record for record in read_records(data, position, limit_bytes=max_bytes)})
        except (KafkaError, MalformedMessage, OSError):
            return found, letter.last_offset
        return found, max(last_offset, writing.next_offset)
