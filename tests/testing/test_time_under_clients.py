"""Deadlines of days, seen by unmodified clients: of a member's session, a transaction, old records and old offsets."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError as KafkaPythonError

from odradek.testing import Broker

# Kafka's default of the consumer, which the broker would shorten for nobody.
SESSION_MS = 45_000
# Later than the end of the test: a heartbeat while time is let pass would prolong the session.
HEARTBEAT_MS = 15_000
TRANSACTION_MS = 15 * 60_000
POLL_S = 10
# Of both clients in Python.
CONSUMER = {
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": HEARTBEAT_MS,
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
}


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def __init__(self, servers):
        self._servers = servers

    def _consumer(self, group):
        return kafka.KafkaConsumer(
            bootstrap_servers=self._servers,
            group_id=f"{group}-{self.name}",
            **CONSUMER,
        )

    def begin(self):
        """Read and commit in one group, be a member of another one, and leave a transaction open."""
        place = kafka.TopicPartition(self.name, 0)
        with kafka.KafkaProducer(bootstrap_servers=self._servers) as producer:
            producer.send(self.name, b"old").get(POLL_S)
        self._reader = self._consumer("reads")
        self._reader.assign([place])
        assert self._reader.poll(POLL_S * 1000)
        self._reader.commit()
        self._member = self._consumer("member")
        self._member.subscribe([self.name])
        assert self._member.poll(POLL_S * 1000)
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=self._servers, transactional_id=self.name, transaction_timeout_ms=TRANSACTION_MS
        )
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self._producer.send("other", b"committed")
        self._producer.commit_transaction()
        self._producer.begin_transaction()
        self._producer.send("other", b"never committed").get(POLL_S)

    def is_member(self):
        """Whether the member may commit: a session that is over is UNKNOWN_MEMBER_ID."""
        try:
            self._member.commit()
        except KafkaPythonError:
            return False
        return True

    def commits(self):
        """Whether the open transaction can be committed, as the one before it could."""
        try:
            self._producer.commit_transaction()
        except KafkaPythonError:
            return False
        return True

    def what_is_left(self):
        """(first offset, next offset, committed offset)"""
        place = kafka.TopicPartition(self.name, 0)
        first, end = self._reader.beginning_offsets([place])[place], self._reader.end_offsets([place])[place]
        return first, end, self._reader.committed(place)

    def close(self):
        self._reader.close(autocommit=False)
        self._member.close(autocommit=False)
        self._producer.close(timeout=0)


class Librdkafka:
    """librdkafka."""

    name = "librdkafka"

    def __init__(self, servers):
        self._servers = servers

    def _consumer(self, group):
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"{group}-{self.name}",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )

    def begin(self):
        """As KafkaPython's."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self._servers})
        producer.produce(self.name, b"old")
        producer.flush(POLL_S)
        self._reader = self._consumer("reads")
        self._reader.assign([confluent_kafka.TopicPartition(self.name, 0, 0)])
        self._reader.commit(self._reader.poll(POLL_S), asynchronous=False)
        self._member = self._consumer("member")
        self._member.subscribe([self.name])
        assert self._member.poll(POLL_S).error() is None
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._servers, "transactional.id": self.name, "transaction.timeout.ms": TRANSACTION_MS}
        )
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self._producer.produce("other", b"committed")
        self._producer.commit_transaction()
        self._producer.begin_transaction()
        self._producer.produce("other", b"never committed")
        self._producer.flush(POLL_S)

    def is_member(self):
        """As KafkaPython's."""
        try:
            self._member.commit(offsets=[confluent_kafka.TopicPartition(self.name, 0, 1)], asynchronous=False)
        except confluent_kafka.KafkaException:
            return False
        return True

    def commits(self):
        """As KafkaPython's."""
        try:
            self._producer.commit_transaction(POLL_S)
        except confluent_kafka.KafkaException:
            return False
        return True

    def what_is_left(self):
        """As KafkaPython's."""
        place = confluent_kafka.TopicPartition(self.name, 0)
        [committed] = self._reader.committed([place], POLL_S)
        offset = None if committed.offset == confluent_kafka.OFFSET_INVALID else committed.offset
        return *self._reader.get_watermark_offsets(place, POLL_S), offset

    def close(self):
        self._reader.close()
        self._member.close()


class Aiokafka:
    """aiokafka, on a loop of its own."""

    name = "aiokafka"

    def __init__(self, servers):
        self._servers = servers
        self._runner = asyncio.Runner()

    def _consumer(self, group):
        return aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            group_id=f"{group}-{self.name}",
            **CONSUMER,
        )

    def begin(self):
        """As KafkaPython's."""
        self._runner.run(self._begin())

    async def _begin(self):
        place = aiokafka.TopicPartition(self.name, 0)
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=self._servers)
        async with producer:
            await producer.send_and_wait(self.name, b"old")
        self._reader = self._consumer("reads")
        self._reader.assign([place])
        await self._reader.start()
        await asyncio.wait_for(self._reader.getone(), POLL_S)
        await self._reader.commit()
        self._member = self._consumer("member")
        self._member.subscribe([self.name])
        await self._member.start()
        await asyncio.wait_for(self._member.getone(), POLL_S)
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._servers, transactional_id=self.name, transaction_timeout_ms=TRANSACTION_MS
        )
        await self._producer.start()
        async with self._producer.transaction():
            await self._producer.send_and_wait("other", b"committed")
        await self._producer.begin_transaction()
        await self._producer.send_and_wait("other", b"never committed")

    def is_member(self):
        """As KafkaPython's."""
        try:
            self._runner.run(self._member.commit())
        except AiokafkaError:
            return False
        return True

    def commits(self):
        """As KafkaPython's."""
        try:
            self._runner.run(self._producer.commit_transaction())
        except AiokafkaError:
            return False
        return True

    def what_is_left(self):
        """As KafkaPython's."""
        place = aiokafka.TopicPartition(self.name, 0)

        async def ask():
            first, end = await self._reader.beginning_offsets([place]), await self._reader.end_offsets([place])
            return first[place], end[place], await self._reader.committed(place)

        return self._runner.run(ask())

    def close(self):
        async def stop():
            await self._reader.stop()
            await self._member.stop()
            with suppress(AiokafkaError):
                await self._producer.stop()

        self._runner.run(stop())
        self._runner.close()


@pytest.fixture
def broker():
    configs = {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
        # librdkafka waits for a second where it has lost its coordinator's connection.
        "connections.max.idle.ms": -1,
        # It looks for work every 15 s otherwise, 40,000 times a week.
        "log.cleaner.backoff.ms": 600_000,
    }
    with Broker(topics={"kafka-python": 1, "librdkafka": 1, "aiokafka": 1, "other": 1}, configs=configs) as broker:
        yield broker


def test_sessions_transactions_records_and_offsets_end_in_time(broker):
    clients = [KafkaPython(broker.bootstrap_servers), Librdkafka(broker.bootstrap_servers), Aiokafka(broker.bootstrap_servers)]
    with ThreadPoolExecutor(len(clients)) as threads:

        def each(name):
            return [future.result() for future in [threads.submit(getattr(client, name)) for client in clients]]

        each("begin")
        assert (each("is_member"), each("what_is_left")) == ([True] * 3, [(0, 1, 1)] * 3)
        broker.clock.advance(milliseconds=SESSION_MS + 1)
        assert each("is_member") == [False] * 3
        broker.clock.advance(milliseconds=TRANSACTION_MS)
        assert each("commits") == [False] * 3
        # And the five and ten minutes after which old records and offsets are looked for.
        broker.clock.advance(days=7, minutes=11)
        assert each("what_is_left") == [(1, 1, None)] * 3
        each("close")
