"""A teller of librdkafka, by confluent-kafka: fenced by its group membership, which it sends with the offsets (KIP-447)."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, ClassVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.campaigns.soak.bank import Placed, decode_order
from tests.campaigns.soak.teller import HEARTBEAT_INTERVAL_MS, Attempt, Teller, Told

if TYPE_CHECKING:
    from collections.abc import Callable

CALL_TIMEOUT_S = 10.0
POLL_TIMEOUT_S = 0.2
RETRY_AFTER_S = 0.05
RECONNECT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    # Bootstrapping again makes librdkafka 2.11 and later forget a broker that it goes on to wait for as the group's coordinator:
    # send_offsets_to_transaction may then hang for good (librdkafka's issue 5511).
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


class ConfluentTeller(Teller):
    make: ClassVar[str] = "librdkafka"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self._consumer = Consumer(
            {
                "bootstrap.servers": told.address,
                "client.id": told.name,
                "group.id": self.group,
                "partition.assignment.strategy": "range",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": told.session_timeout_ms,
                "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
                "fetch.wait.max.ms": 50,
                **RECONNECT,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": told.address,
                "client.id": told.name,
                "transactional.id": told.transactional_id,
                "transaction.timeout.ms": told.transaction_timeout_ms,
                "linger.ms": 0,
                **RECONNECT,
            }
        )
        self._gathered: list[Placed] = []

    def work(self) -> None:
        _insist(self._producer.init_transactions)
        self._consumer.subscribe(
            [self.group], on_assign=_begin_where_the_group_is, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )
        while self.goes_on():
            self._gather()
            metadata = self._consumer.consumer_group_metadata()
            # librdkafka's group metadata begins with "CGMDv2:" and the generation. It has no generation if the member has just
            # been removed from the group; then the broker would check nothing.
            (generation,) = struct.unpack_from("<i", metadata, len("CGMDv2:"))
            if not self._gathered:
                continue
            attempt = self.attempt(self._gathered)
            if generation >= 0 and self._carry_out(attempt, metadata):
                continue
            for (topic, partition), offset in attempt.begin.items():
                self._read_again(TopicPartition(topic, partition, offset))
        self._consumer.close()

    def _gather(self) -> None:
        """Gather a few orders; fewer if the broker has fewer, or if partitions are revoked meanwhile."""
        self._gathered = []
        timeout_s = POLL_TIMEOUT_S
        for _ in range(self.told.orders):
            message = self._consumer.poll(timeout_s)
            if message is None:
                return
            timeout_s = 0
            if message.error() is None:
                order = decode_order(message.value())
                self._gathered.append(Placed(message.topic(), message.partition(), message.offset(), order))

    def _carry_out(self, attempt: Attempt, metadata: object) -> bool:
        """Run the transaction; False where it had to be aborted."""
        producer = self._producer
        try:
            producer.begin_transaction()
            for output in attempt.outputs:
                producer.produce(output.partition[0], output.value, partition=output.partition[1])
            offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in attempt.offsets.items()]
            _insist(lambda timeout_s: producer.send_offsets_to_transaction(offsets, metadata, timeout_s))
            producer.flush(CALL_TIMEOUT_S)
            time.sleep(attempt.pause_s)
            _insist(producer.abort_transaction if attempt.is_doomed else producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            _insist(producer.abort_transaction)
            self.refused(attempt, error)
            return False
        self.ended(attempt)
        return not attempt.is_doomed

    def _read_again(self, partition: TopicPartition) -> None:
        if any(held.partition == partition.partition for held in self._consumer.assignment()):
            self._consumer.seek(partition)

    def _on_revoke(self, _: Consumer, revoked: list[TopicPartition]) -> None:
        gone = {each.partition for each in revoked}
        self._gathered = [placed for placed in self._gathered if placed.partition not in gone]


def _begin_where_the_group_is(consumer: Consumer, assigned: list[TopicPartition]) -> None:
    """Start the partitions at their committed offsets, once no transaction can change these.

    Otherwise librdkafka 2.16 starts at the first offset if its assignment changes while it waits for the committed one.
    """
    while True:
        try:
            found = consumer.committed(assigned, CALL_TIMEOUT_S)
            if all(each.error is None for each in found):
                break
        except KafkaException:
            pass  # The broker is away.
        time.sleep(RETRY_AFTER_S)
    consumer.assign([TopicPartition(at.topic, at.partition, at.offset if at.offset >= 0 else OFFSET_BEGINNING) for at in found])


def _insist(call: Callable[[float], None]) -> None:
    """Call until there is a final answer."""
    while True:
        try:
            return call(CALL_TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
