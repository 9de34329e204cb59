"""kafka-python against a real broker over a real socket."""

import os
import time
from collections import defaultdict

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidRecordError, MessageSizeTooLargeError

from tests.clients.conftest import CLIENT_TIMEOUT_S

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
CREATE_TIME, LOG_APPEND_TIME = 0, 1
# A long poll that nothing wakes is noticed by how long it took.
LONG_POLL_MS = 10_000


@pytest.fixture
def new_producer(broker):
    producers = []

    def make(**config):
        producer = KafkaProducer(bootstrap_servers=broker.address, **config)
        producers.append(producer)
        return producer

    yield make
    for producer in producers:
        producer.close(CLIENT_TIMEOUT_S)


@pytest.fixture
def new_consumer(broker):
    """Makes consumers of partition 0, or of ``partitions``, of a topic."""
    consumers = []

    def make(topic, partitions=(0,), **config):
        consumer = KafkaConsumer(
            bootstrap_servers=broker.address, **{"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **config}
        )
        consumers.append(consumer)
        consumer.assign([TopicPartition(topic, partition) for partition in partitions])
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()


def produce(producer, topic, *values, **fields):
    """Produce and wait; what the broker said of each record."""
    futures = [producer.send(topic, value, **fields) for value in values]
    return [future.get(CLIENT_TIMEOUT_S) for future in futures]


def consume(consumer, count):
    """The next ``count`` records of whatever is assigned."""
    records = []
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        for batch in consumer.poll(500, max_records=count - len(records)).values():
            records += batch
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_produced(new_topic, new_producer, new_consumer, codec):
    topic = new_topic()
    sent = [
        (b"key", b"value" * 200, (("header", b"one"), ("header", b"two"), ("", b""))),
        (None, b"no key", ()),
        (b"tombstone", None, ()),
        (b"", b"", (("ünï", b"\x00\xff"),)),
    ]
    producer = new_producer(compression_type=codec, linger_ms=50)
    futures = [producer.send(topic, value, key, headers=list(headers)) for key, value, headers in sent]
    assert [future.get(CLIENT_TIMEOUT_S).offset for future in futures] == [0, 1, 2, 3]
    records = consume(new_consumer(topic, check_crcs=True), len(sent))
    assert [(record.key, record.value, tuple(record.headers)) for record in records] == sent
    assert [record.offset for record in records] == [0, 1, 2, 3]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_delivers(new_topic, new_producer, new_consumer, acks):
    topic = new_topic()
    produce(new_producer(acks=acks, enable_idempotence=False), topic, b"one", b"two")
    assert [record.value for record in consume(new_consumer(topic), 2)] == [b"one", b"two"]


def test_an_idempotent_producer_delivers_in_order_and_once(new_topic, new_producer, new_consumer):
    topic = new_topic()
    values = [b"%d" % number for number in range(1000)]
    produce(new_producer(enable_idempotence=True, batch_size=200), topic, *values)
    consumer = new_consumer(topic)
    assert [record.value for record in consume(consumer, len(values))] == values
    partition = TopicPartition(topic, 0)
    assert consumer.end_offsets([partition]) == {partition: len(values)}


def test_order_is_kept_in_each_of_several_partitions(new_topic, new_producer, new_consumer):
    topic = new_topic(4)
    producer = new_producer()
    for number in range(400):
        producer.send(topic, b"%d" % number, b"%d" % (number % 17))
    producer.flush(CLIENT_TIMEOUT_S)
    by_partition = defaultdict(list)
    for record in consume(new_consumer(topic, range(4)), 400):
        by_partition[record.partition].append(int(record.value))
    assert len(by_partition) == 4
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())
    assert sorted(number for numbers in by_partition.values() for number in numbers) == list(range(400))


def test_records_of_a_megabyte_come_back_whole(new_topic, new_producer, new_consumer):
    topic = new_topic()
    values = [os.urandom(1_000_000) for _ in range(3)]
    produce(new_producer(max_request_size=2_000_000), topic, *values)
    assert [record.value for record in consume(new_consumer(topic), 3)] == values


def test_a_record_larger_than_the_fetch_size_is_fetched_all_the_same(new_topic, new_producer, new_consumer):
    topic = new_topic()
    value = os.urandom(500_000)
    produce(new_producer(linger_ms=0), topic, b"small", value, b"small")
    consumer = new_consumer(topic, max_partition_fetch_bytes=1000, fetch_max_bytes=1000)
    assert [record.value for record in consume(consumer, 3)] == [b"small", value, b"small"]


def test_a_batch_over_max_message_bytes_is_refused_and_the_next_one_taken(new_topic, new_producer, new_consumer):
    topic = new_topic(config={"max.message.bytes": "10000"})
    # With idempotence on, this client's producer does not go on after such an error.
    producer = new_producer(enable_idempotence=False)
    with pytest.raises(MessageSizeTooLargeError):
        produce(producer, topic, os.urandom(20_000))
    produce(producer, topic, b"small")
    assert [record.value for record in consume(new_consumer(topic), 1)] == [b"small"]


def test_a_compacted_topic_refuses_a_record_without_a_key(new_topic, new_producer):
    topic = new_topic(config={"cleanup.policy": "compact"})
    with pytest.raises(InvalidRecordError):
        produce(new_producer(), topic, b"x")


def test_a_create_time_topic_keeps_the_producers_timestamps(new_topic, new_producer, new_consumer):
    topic = new_topic()
    producer = new_producer()
    for timestamp in (1_600_000_000_000, 1_500_000_000_000):
        produce(producer, topic, b"x", timestamp_ms=timestamp)
    assert [(record.timestamp_type, record.timestamp) for record in consume(new_consumer(topic), 2)] == [
        (CREATE_TIME, 1_600_000_000_000),
        (CREATE_TIME, 1_500_000_000_000),
    ]


def test_a_log_append_time_topic_has_the_brokers_timestamps(new_topic, new_producer, new_consumer):
    topic = new_topic(config={"message.timestamp.type": "LogAppendTime"})
    before = time.time_ns() // 1_000_000
    (told,) = produce(new_producer(), topic, b"x", timestamp_ms=1_500_000_000_000)
    (record,) = consume(new_consumer(topic), 1)
    assert record.timestamp_type == LOG_APPEND_TIME
    assert before <= record.timestamp <= time.time_ns() // 1_000_000
    assert told.timestamp == record.timestamp


def test_a_consumer_seeks_back_and_forth(new_topic, new_producer, new_consumer):
    topic = new_topic()
    producer = new_producer(linger_ms=0)
    for number in range(10):
        produce(producer, topic, b"%d" % number)
    partition = TopicPartition(topic, 0)
    consumer = new_consumer(topic)
    consumer.seek(partition, 7)
    assert [record.offset for record in consume(consumer, 3)] == [7, 8, 9]
    consumer.seek(partition, 2)
    assert [record.offset for record in consume(consumer, 2)] == [2, 3]
    consumer.seek_to_beginning(partition)
    assert consume(consumer, 1)[0].offset == 0
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 10


def test_a_consumer_beyond_the_end_starts_where_it_was_told_to(new_topic, new_producer, new_consumer):
    topic = new_topic()
    produce(new_producer(), topic, b"x")
    consumer = new_consumer(topic)
    consumer.seek(TopicPartition(topic, 0), 1000)
    assert consume(consumer, 1)[0].offset == 0


def test_offsets_are_found_by_time(new_topic, new_producer, new_consumer):
    topic = new_topic(2)
    producer = new_producer()
    for timestamp in (1_600_000_000_000, 1_600_000_001_000):
        produce(producer, topic, b"x", partition=0, timestamp_ms=timestamp)
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = new_consumer(topic, (0, 1))
    found = consumer.offsets_for_times({full: 1_600_000_000_001, empty: 0})
    assert (found[full].offset, found[full].timestamp) == (1, 1_600_000_001_000)
    assert found[empty] is None
    assert consumer.offsets_for_times({full: 1_600_000_001_001}) == {full: None}


def test_a_consumer_knows_where_a_partition_begins_and_ends(new_topic, new_producer, new_consumer):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    consumer = new_consumer(topic)
    assert (consumer.beginning_offsets([partition]), consumer.end_offsets([partition])) == ({partition: 0}, {partition: 0})
    produce(new_producer(), topic, b"one", b"two")
    assert (consumer.beginning_offsets([partition]), consumer.end_offsets([partition])) == ({partition: 0}, {partition: 2})


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_plain_records_are_read_under_both_isolation_levels(new_topic, new_producer, new_consumer, isolation):
    topic = new_topic()
    produce(new_producer(), topic, b"x")
    assert consume(new_consumer(topic, isolation_level=isolation), 1)[0].value == b"x"


def test_a_long_poll_ends_as_soon_as_a_record_arrives(new_topic, new_producer, new_consumer):
    topic = new_topic()
    producer = new_producer()
    consumer = new_consumer(topic, fetch_max_wait_ms=LONG_POLL_MS)
    produce(producer, topic, b"first")
    consume(consumer, 1)
    assert consumer.poll(300) == {}
    started = time.monotonic()
    produce(producer, topic, b"second")
    assert consume(consumer, 1)[0].value == b"second"
    assert time.monotonic() - started < LONG_POLL_MS / 4000


def test_a_consumer_of_an_empty_topic_waits_without_spinning(new_topic, new_consumer):
    consumer = new_consumer(new_topic(), fetch_max_wait_ms=250)
    assert consumer.poll(1000) == {}
    assert consumer.metrics()["consumer-fetch-manager-metrics"]["fetch-latency-avg"] > 200


def test_an_unknown_topic_is_created_by_producing_to_it(new_name, new_producer, new_consumer):
    topic = new_name()
    produce(new_producer(), topic, b"x")
    assert consume(new_consumer(topic), 1)[0].value == b"x"


def test_a_consumer_finds_a_topic_that_is_created_after_it_asked(new_name, new_producer, new_consumer):
    topic = new_name()
    consumer = new_consumer(topic, metadata_max_age_ms=200, allow_auto_create_topics=False)
    assert consumer.poll(300) == {}
    produce(new_producer(), topic, b"x")
    assert consume(consumer, 1)[0].value == b"x"


def test_a_producer_finds_partitions_that_another_client_adds(new_topic, new_producer, broker):
    topic = new_topic(1)
    producer = new_producer(metadata_max_age_ms=100)
    assert producer.partitions_for(topic) == {0}
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    admin.create_partitions({topic: 3})
    admin.close()
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while producer.partitions_for(topic) != {0, 1, 2}:
        assert time.monotonic() < deadline
    assert produce(producer, topic, b"x", partition=2)[0].partition == 2
