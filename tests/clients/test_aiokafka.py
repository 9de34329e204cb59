"""aiokafka against a real broker over a real socket."""

import os
import time
from collections import defaultdict
from contextlib import AsyncExitStack

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError

from tests.clients.conftest import CLIENT_TIMEOUT_S

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
CREATE_TIME, LOG_APPEND_TIME = 0, 1
# A long poll that nothing wakes is noticed by how long it took.
LONG_POLL_MS = 10_000

pytestmark = pytest.mark.timeout(2 * CLIENT_TIMEOUT_S)


class Clients:
    """Clients of one broker, started by whoever makes them and stopped together."""

    def __init__(self, address, stack):
        self._address = address
        self._stack = stack

    async def producer(self, **config):
        return await self._stack.enter_async_context(AIOKafkaProducer(bootstrap_servers=self._address, **config))

    async def consumer(self, topic, partitions=(0,), **config):
        defaults = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100}
        consumer = AIOKafkaConsumer(bootstrap_servers=self._address, **{**defaults, **config})
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        return await self._stack.enter_async_context(consumer)

    async def admin(self):
        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        self._stack.push_async_callback(admin.close)
        return admin


@pytest.fixture
async def clients(broker):
    """Clients of the module's broker, which are stopped at the test's end."""
    async with AsyncExitStack() as stack:
        yield Clients(broker.address, stack)


async def produce(producer, topic, *values, **fields):
    """Produce and wait; what the broker said of each record."""
    futures = [await producer.send(topic, value, **fields) for value in values]
    return [await future for future in futures]


async def consume(consumer, count):
    return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
async def test_records_come_back_as_they_were_produced(clients, new_topic, codec):
    topic = new_topic()
    sent = [
        (b"key", b"value" * 200, (("header", b"one"), ("header", b"two"), ("", b""))),
        (None, b"no key", ()),
        (b"tombstone", None, ()),
        (b"", b"", (("ünï", b"\x00\xff"),)),
    ]
    producer = await clients.producer(compression_type=codec, linger_ms=50)
    futures = [await producer.send(topic, value, key, headers=list(headers)) for key, value, headers in sent]
    assert [(await future).offset for future in futures] == [0, 1, 2, 3]
    records = await consume(await clients.consumer(topic, check_crcs=True), len(sent))
    assert [(record.key, record.value, record.headers) for record in records] == sent
    assert [record.offset for record in records] == [0, 1, 2, 3]


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_every_acks_delivers(clients, new_topic, acks):
    topic = new_topic()
    await produce(await clients.producer(acks=acks), topic, b"one", b"two")
    assert [record.value for record in await consume(await clients.consumer(topic), 2)] == [b"one", b"two"]


async def test_an_idempotent_producer_delivers_in_order_and_once(clients, new_topic):
    topic = new_topic()
    values = [b"%d" % number for number in range(1000)]
    await produce(await clients.producer(enable_idempotence=True, max_batch_size=200), topic, *values)
    consumer = await clients.consumer(topic)
    assert [record.value for record in await consume(consumer, len(values))] == values
    partition = TopicPartition(topic, 0)
    assert await consumer.end_offsets([partition]) == {partition: len(values)}


async def test_order_is_kept_in_each_of_several_partitions(clients, new_topic):
    topic = new_topic(4)
    producer = await clients.producer()
    for number in range(400):
        await producer.send(topic, b"%d" % number, b"%d" % (number % 17))
    await producer.flush()
    by_partition = defaultdict(list)
    for record in await consume(await clients.consumer(topic, range(4)), 400):
        by_partition[record.partition].append(int(record.value))
    assert len(by_partition) == 4
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())
    assert sorted(number for numbers in by_partition.values() for number in numbers) == list(range(400))


async def test_records_of_a_megabyte_come_back_whole(clients, new_topic):
    topic = new_topic()
    values = [os.urandom(1_000_000) for _ in range(3)]
    await produce(await clients.producer(max_request_size=2_000_000), topic, *values)
    assert [record.value for record in await consume(await clients.consumer(topic), 3)] == values


async def test_a_batch_over_max_message_bytes_is_refused_and_the_next_one_taken(clients, new_topic):
    topic = new_topic(config={"max.message.bytes": "10000"})
    producer = await clients.producer()
    with pytest.raises(MessageSizeTooLargeError):
        await produce(producer, topic, os.urandom(20_000))
    await produce(producer, topic, b"small")
    assert [record.value for record in await consume(await clients.consumer(topic), 1)] == [b"small"]


async def test_a_create_time_topic_keeps_the_producers_timestamps(clients, new_topic):
    topic = new_topic()
    producer = await clients.producer()
    for timestamp in (1_600_000_000_000, 1_500_000_000_000):
        await produce(producer, topic, b"x", timestamp_ms=timestamp)
    records = await consume(await clients.consumer(topic), 2)
    assert [(record.timestamp_type, record.timestamp) for record in records] == [
        (CREATE_TIME, 1_600_000_000_000),
        (CREATE_TIME, 1_500_000_000_000),
    ]


async def test_a_log_append_time_topic_has_the_brokers_timestamps(clients, new_topic):
    topic = new_topic(config={"message.timestamp.type": "LogAppendTime"})
    before = time.time_ns() // 1_000_000
    (told,) = await produce(await clients.producer(), topic, b"x", timestamp_ms=1_500_000_000_000)
    (record,) = await consume(await clients.consumer(topic), 1)
    assert record.timestamp_type == told.timestamp_type == LOG_APPEND_TIME
    assert before <= record.timestamp == told.timestamp <= time.time_ns() // 1_000_000


async def test_a_consumer_seeks_back_and_forth(clients, new_topic):
    topic = new_topic()
    producer = await clients.producer()
    for number in range(10):
        await produce(producer, topic, b"%d" % number)
    partition = TopicPartition(topic, 0)
    consumer = await clients.consumer(topic)
    consumer.seek(partition, 7)
    assert [record.offset for record in await consume(consumer, 3)] == [7, 8, 9]
    consumer.seek(partition, 2)
    assert [record.offset for record in await consume(consumer, 2)] == [2, 3]
    await consumer.seek_to_beginning(partition)
    assert (await consumer.getone()).offset == 0
    await consumer.seek_to_end(partition)
    assert await consumer.position(partition) == 10


async def test_offsets_are_found_by_time(clients, new_topic):
    topic = new_topic(2)
    producer = await clients.producer()
    for timestamp in (1_600_000_000_000, 1_600_000_001_000):
        await produce(producer, topic, b"x", partition=0, timestamp_ms=timestamp)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = await clients.consumer(topic, (0, 1))
    found = await consumer.offsets_for_times({full: 1_600_000_000_001, empty: 0})
    assert (found[full].offset, found[full].timestamp) == (1, 1_600_000_001_000)
    assert found[empty] is None
    assert await consumer.beginning_offsets([full, empty]) == {full: 0, empty: 0}
    assert await consumer.end_offsets([full, empty]) == {full: 2, empty: 0}


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_plain_records_are_read_under_both_isolation_levels(clients, new_topic, isolation):
    topic = new_topic()
    await produce(await clients.producer(), topic, b"x")
    consumer = await clients.consumer(topic, isolation_level=isolation)
    assert (await consumer.getone()).value == b"x"


async def test_a_long_poll_ends_as_soon_as_a_record_arrives(clients, new_topic):
    topic = new_topic()
    producer = await clients.producer()
    consumer = await clients.consumer(topic, fetch_max_wait_ms=LONG_POLL_MS)
    await produce(producer, topic, b"first")
    await consumer.getone()
    assert await consumer.getmany(timeout_ms=300) == {}
    started = time.monotonic()
    await produce(producer, topic, b"second")
    assert (await consumer.getone()).value == b"second"
    assert time.monotonic() - started < LONG_POLL_MS / 4000


async def test_an_unknown_topic_is_created_by_producing_to_it(clients, new_name):
    topic = new_name()
    await produce(await clients.producer(), topic, b"x")
    assert (await (await clients.consumer(topic)).getone()).value == b"x"


async def test_a_producer_finds_partitions_that_another_client_adds(clients, new_topic):
    topic = new_topic(1)
    producer = await clients.producer()
    assert await producer.partitions_for(topic) == {0}
    await (await clients.admin()).create_partitions({topic: NewPartitions(3)})
    await producer.client.force_metadata_update()
    (told,) = await produce(producer, topic, b"x", partition=2)
    assert told.partition == 2


async def test_topics_are_created_described_and_deleted(clients, new_name):
    topic = new_name()
    admin = await clients.admin()
    response = await admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "1234"})])
    assert [error[1] for error in response.topic_errors] == [0]
    (described,) = await admin.describe_topics([topic])
    assert (described["topic"], len(described["partitions"])) == (topic, 2)
    await admin.delete_topics([topic])
    assert topic not in await admin.list_topics()


async def test_configs_are_described_and_altered(clients, new_topic):
    topic = new_topic()
    admin = await clients.admin()
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1234"})])
    (response,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": None})])
    (resource,) = response.resources
    (entry,) = resource[4]
    assert entry[:2] == ("retention.ms", "1234")


async def test_deleted_records_are_out_of_reach(clients, new_topic):
    topic = new_topic()
    await produce(await clients.producer(), topic, *(b"%d" % number for number in range(5)))
    partition = TopicPartition(topic, 0)
    assert await (await clients.admin()).delete_records({partition: RecordsToDelete(before_offset=3)}) == {partition: 3}
    assert (await (await clients.consumer(topic)).getone()).offset == 3


async def test_the_cluster_is_described(clients):
    cluster = await (await clients.admin()).describe_cluster()
    assert [node["node_id"] for node in cluster["brokers"]] == [1]
