"""Transactions by the clients written in Python: kafka-python and aiokafka."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.clients.conftest import CLIENT_TIMEOUT_S

END = b"end"


@pytest.fixture
def new_producer(broker):
    producers = []

    def make(name):
        producer = KafkaProducer(bootstrap_servers=broker.address, transactional_id=name)
        producers.append(producer)
        producer.init_transactions()
        return producer

    yield make
    for producer in producers:
        producer.close(CLIENT_TIMEOUT_S)


def read(broker, topic):
    """The values up to END, as a reader of what is committed sees them."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.address,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=CLIENT_TIMEOUT_S * 1000,
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        values = []
        for record in consumer:
            if record.value == END:
                break
            values.append(record.value)
        return values
    finally:
        consumer.close()


def test_kafka_python_commits_and_aborts(broker, new_producer, new_name):
    topic = new_name()
    producer = new_producer(f"id-{topic}")
    for number in range(4):
        producer.begin_transaction()
        producer.send(topic, b"%d" % number, partition=0)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.begin_transaction()
    producer.send(topic, END, partition=0)
    producer.commit_transaction()
    assert read(broker, topic) == [b"0", b"2"]


def test_kafka_python_commits_offsets_with_a_transaction(broker, new_producer, new_name):
    topic, group = new_name(), new_name()
    producer = new_producer(f"id-{topic}")
    producer.begin_transaction()
    producer.send(topic, b"output", partition=0)
    producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(7, "", -1)}, group)
    producer.commit_transaction()
    consumer = KafkaConsumer(bootstrap_servers=broker.address, group_id=group)
    try:
        assert consumer.committed(TopicPartition(topic, 0)) == 7
    finally:
        consumer.close()


async def test_aiokafka_commits_and_aborts(broker, new_name):
    topic = new_name()

    producer = AIOKafkaProducer(bootstrap_servers=broker.address, transactional_id=f"id-{topic}")
    async with asyncio.timeout(2 * CLIENT_TIMEOUT_S), producer:
        async with producer.transaction():
            await producer.send_and_wait(topic, b"committed", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"aborted", partition=0)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(topic, END, partition=0)
    assert read(broker, topic) == [b"committed"]


async def test_aiokafka_consumes_transforms_and_produces(broker, new_name):
    source, target, group = new_name(), new_name(), new_name()
    producer = AIOKafkaProducer(bootstrap_servers=broker.address, transactional_id=f"id-{source}")
    plain = AIOKafkaProducer(bootstrap_servers=broker.address)
    async with asyncio.timeout(2 * CLIENT_TIMEOUT_S), plain, producer:
        await plain.send_and_wait(source, b"in", partition=0)
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=broker.address,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        async with consumer:
            record = await consumer.getone()
            async with producer.transaction():
                await producer.send_and_wait(target, record.value.upper(), partition=0)
                await producer.send_and_wait(target, END, partition=0)
                partition = AioTopicPartition(source, 0)
                await producer.send_offsets_to_transaction({partition: record.offset + 1}, group)
            assert await consumer.committed(partition) == 1
    assert read(broker, target) == [b"IN"]


async def test_an_aiokafka_producer_whose_id_was_taken_over_is_fenced(broker, new_name):
    topic = new_name()

    zombie = AIOKafkaProducer(bootstrap_servers=broker.address, transactional_id=f"id-{topic}")
    successor = AIOKafkaProducer(bootstrap_servers=broker.address, transactional_id=f"id-{topic}")
    async with asyncio.timeout(2 * CLIENT_TIMEOUT_S):
        await zombie.start()
        try:
            await zombie.begin_transaction()
            await zombie.send_and_wait(topic, b"zombie", partition=0)
            async with successor, successor.transaction():
                await successor.send_and_wait(topic, END, partition=0)
            with pytest.raises(ProducerFenced):
                await zombie.commit_transaction()
        finally:
            await zombie.stop()
    assert read(broker, topic) == []
