"""librdkafka, by way of confluent-kafka: producing and consuming against a real broker over a real socket."""

import json
import os
import time
from collections import defaultdict

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Producer,
    TopicPartition,
)

from tests.clients.conftest import CLIENT_TIMEOUT_S

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
# A long poll that nothing wakes is noticed by how long it took.
LONG_POLL_MS = 10_000


@pytest.fixture
def producer(broker):
    return new_producer(broker)


def new_producer(broker, **config):
    return Producer({"bootstrap.servers": broker.address, "linger.ms": 0, **config})


@pytest.fixture
def new_consumer(broker):
    """Makes consumers that are closed at the end; a group id must be named and is not used."""
    consumers = []

    def make(**config):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "not-used",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                **config,
            }
        )
        consumers.append(consumer)
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()


def produce(producer, topic, *values, **fields):
    """Produce and wait; the delivered messages in the order of their acknowledgement."""
    delivered = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, message: delivered.append((error, message)), **fields)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    assert [str(error) for error, _ in delivered if error] == []
    return [message for _, message in delivered]


def refusal(producer, topic, value, **fields):
    """The error's code that a single message gets."""
    errors = []
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error.code() if error else None), **fields)
    producer.flush(CLIENT_TIMEOUT_S)
    return errors[0]


def consume(consumer, count):
    """The next ``count`` messages of whatever is assigned."""
    messages = []
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} messages"
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            messages.append(message)
    return messages


def next_message(consumer):
    """The next message; errors that a client lives through, such as a broker that is away, are passed over."""
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while (message := consumer.poll(0.5)) is None or message.error():
        assert time.monotonic() < deadline
    return message


def consume_from(new_consumer, topic, count, partitions=(0,), offset=0, **config):
    consumer = new_consumer(**config)
    consumer.assign([TopicPartition(topic, partition, offset) for partition in partitions])
    return consume(consumer, count)


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_produced(broker, new_topic, new_consumer, codec):
    topic = new_topic()
    sent = [
        (b"key", b"value" * 200, [("header", b"one"), ("header", b"two"), ("null", None), ("", b"")]),
        (None, b"no key", []),
        (b"tombstone", None, []),
        (b"", b"", [("ünï", b"\x00\xff")]),
        (None, None, []),
    ]
    producer = new_producer(broker, **{"compression.type": codec, "linger.ms": 50, "enable.idempotence": False})
    for key, value, headers in sent:
        producer.produce(topic, value, key, headers=headers)
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    messages = consume_from(new_consumer, topic, len(sent), **{"check.crcs": True})
    # librdkafka gives an empty list of headers for none.
    assert [(message.key(), message.value(), message.headers() or []) for message in messages] == sent
    assert [message.offset() for message in messages] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("codec", CODECS)
def test_a_topics_own_codec_is_no_matter_to_clients(producer, new_topic, new_consumer, codec):
    topic = new_topic(config={"compression.type": "uncompressed" if codec == "none" else codec})
    produce(producer, topic, *(b"%d" % number for number in range(20)))
    assert [message.value() for message in consume_from(new_consumer, topic, 20)] == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_delivers(broker, new_topic, new_consumer, acks):
    topic = new_topic()
    produce(new_producer(broker, acks=acks), topic, b"one", b"two")
    assert [message.value() for message in consume_from(new_consumer, topic, 2)] == [b"one", b"two"]


def test_an_idempotent_producer_delivers_in_order_and_once(broker, new_topic, new_consumer):
    topic = new_topic()
    values = [b"%d" % number for number in range(2000)]
    producer = new_producer(broker, **{"enable.idempotence": True, "batch.num.messages": 10})
    produce(producer, topic, *values)
    consumer = new_consumer()
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in consume(consumer, len(values))] == values
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (0, len(values))


def test_order_is_kept_in_each_of_several_partitions(producer, new_topic, new_consumer):
    topic = new_topic(4)
    for number in range(1000):
        producer.produce(topic, b"%d" % number, key=b"%d" % (number % 17))
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    by_partition = defaultdict(list)
    for message in consume_from(new_consumer, topic, 1000, partitions=range(4)):
        by_partition[message.partition()].append(int(message.value()))
    assert len(by_partition) == 4
    assert all(numbers == sorted(numbers) for numbers in by_partition.values())
    assert sorted(number for numbers in by_partition.values() for number in numbers) == list(range(1000))


def test_records_of_a_megabyte_come_back_whole(broker, new_topic, new_consumer):
    topic = new_topic()
    values = [os.urandom(1_000_000) for _ in range(3)]
    produce(new_producer(broker, **{"message.max.bytes": 2_000_000}), topic, *values)
    assert [message.value() for message in consume_from(new_consumer, topic, 3)] == values


def test_a_record_larger_than_the_fetch_size_is_fetched_all_the_same(broker, new_topic, new_consumer):
    topic = new_topic()
    value = os.urandom(500_000)
    produce(new_producer(broker), topic, b"small", value, b"small")
    small = {"fetch.message.max.bytes": 1000, "fetch.max.bytes": 1000, "message.max.bytes": 1000}
    assert [message.value() for message in consume_from(new_consumer, topic, 3, **small)] == [b"small", value, b"small"]


def test_a_batch_over_max_message_bytes_is_refused_and_the_next_one_taken(broker, new_topic, new_consumer):
    topic = new_topic(config={"max.message.bytes": "10000"})
    producer = new_producer(broker)
    assert refusal(producer, topic, os.urandom(20_000)) == KafkaError.MSG_SIZE_TOO_LARGE
    produce(producer, topic, b"small")
    assert [message.value() for message in consume_from(new_consumer, topic, 1)] == [b"small"]


def test_a_partition_that_is_not_there_is_refused(producer, new_topic):
    assert refusal(producer, new_topic(), b"x", partition=7) == KafkaError._UNKNOWN_PARTITION


def test_a_compacted_topic_refuses_a_record_without_a_key(producer, new_topic):
    topic = new_topic(config={"cleanup.policy": "compact"})
    assert refusal(producer, topic, b"x") == KafkaError.INVALID_RECORD


def test_a_create_time_topic_keeps_the_producers_timestamps(producer, new_topic, new_consumer):
    topic = new_topic()
    for timestamp in (1_600_000_000_000, 1_500_000_000_000):
        produce(producer, topic, b"x", timestamp=timestamp)
    assert [message.timestamp() for message in consume_from(new_consumer, topic, 2)] == [
        (TIMESTAMP_CREATE_TIME, 1_600_000_000_000),
        (TIMESTAMP_CREATE_TIME, 1_500_000_000_000),
    ]


def test_a_log_append_time_topic_has_the_brokers_timestamps(producer, new_topic, new_consumer):
    topic = new_topic(config={"message.timestamp.type": "LogAppendTime"})
    before = time.time_ns() // 1_000_000
    (delivered,) = produce(producer, topic, b"x", timestamp=1_500_000_000_000)
    (message,) = consume_from(new_consumer, topic, 1)
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= timestamp <= time.time_ns() // 1_000_000
    assert delivered.timestamp() == (kind, timestamp)


def test_a_consumer_seeks_back_and_forth(producer, new_topic, new_consumer):
    topic = new_topic()
    for number in range(10):
        produce(producer, topic, b"%d" % number)
    consumer = new_consumer()
    consumer.assign([TopicPartition(topic, 0, 7)])
    assert [message.offset() for message in consume(consumer, 3)] == [7, 8, 9]
    consumer.seek(TopicPartition(topic, 0, 2))
    assert [message.offset() for message in consume(consumer, 2)] == [2, 3]
    consumer.seek(TopicPartition(topic, 0, OFFSET_BEGINNING))
    assert consume(consumer, 1)[0].offset() == 0


def test_a_consumer_beyond_the_end_starts_where_it_was_told_to(producer, new_topic, new_consumer):
    topic = new_topic()
    produce(producer, topic, b"x")
    (message,) = consume_from(new_consumer, topic, 1, offset=1000, **{"auto.offset.reset": "earliest"})
    assert message.offset() == 0


def test_offsets_are_found_by_time(producer, new_topic, new_consumer):
    topic = new_topic(2)
    for timestamp in (1_600_000_000_000, 1_600_000_001_000, 1_600_000_002_000):
        produce(producer, topic, b"x", partition=0, timestamp=timestamp)
    asked = [TopicPartition(topic, 0, 1_600_000_000_001), TopicPartition(topic, 1, 0)]
    found = new_consumer().offsets_for_times(asked, CLIENT_TIMEOUT_S)
    # -1, OFFSET_END, is librdkafka's answer where there is no such record.
    assert [(partition.offset, partition.error) for partition in found] == [(1, None), (-1, None)]
    after_all = new_consumer().offsets_for_times([TopicPartition(topic, 0, 1_600_000_002_001)], CLIENT_TIMEOUT_S)
    assert after_all[0].offset == -1


def test_a_consumer_knows_where_a_partition_begins_and_ends(producer, new_topic, new_consumer):
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    assert new_consumer().get_watermark_offsets(partition, CLIENT_TIMEOUT_S) == (0, 0)
    produce(producer, topic, b"one", b"two")
    assert new_consumer().get_watermark_offsets(partition, CLIENT_TIMEOUT_S) == (0, 2)


def test_a_consumer_is_told_when_it_reaches_the_end(producer, new_topic, new_consumer):
    topic = new_topic()
    produce(producer, topic, b"x")
    consumer = new_consumer(**{"enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consume(consumer, 1)[0].value() == b"x"
    end = consumer.poll(CLIENT_TIMEOUT_S)
    assert end.error().code() == KafkaError._PARTITION_EOF
    assert end.offset() == 1


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_plain_records_are_read_under_both_isolation_levels(producer, new_topic, new_consumer, isolation):
    topic = new_topic()
    produce(producer, topic, b"x")
    (message,) = consume_from(new_consumer, topic, 1, **{"isolation.level": isolation})
    assert message.value() == b"x"


def test_a_long_poll_ends_as_soon_as_a_record_arrives(producer, new_topic, new_consumer):
    topic = new_topic()
    consumer = new_consumer(**{"fetch.wait.max.ms": LONG_POLL_MS})
    consumer.assign([TopicPartition(topic, 0, 0)])
    # The first record shows that the consumer is fetching; the fetch after it waits.
    produce(producer, topic, b"first")
    consume(consumer, 1)
    assert consumer.poll(0.3) is None
    started = time.monotonic()
    produce(producer, topic, b"second")
    assert consume(consumer, 1)[0].value() == b"second"
    assert time.monotonic() - started < LONG_POLL_MS / 4000


def test_a_consumer_of_an_empty_topic_waits_without_spinning(new_topic, new_consumer):
    fetches = []
    statistics = {"statistics.interval.ms": 100, "stats_cb": lambda text: fetches.append(count_fetches(json.loads(text)))}
    consumer = new_consumer(**{"fetch.wait.max.ms": 250}, **statistics)
    consumer.assign([TopicPartition(new_topic(), 0, 0)])
    assert consumer.poll(1.5) is None
    assert 1 <= fetches[-1] <= 8


def count_fetches(statistics):
    return sum(broker["req"].get("Fetch", 0) for broker in statistics["brokers"].values())


def test_an_unknown_topic_is_created_by_producing_to_it(producer, new_name, new_consumer):
    topic = new_name()
    produce(producer, topic, b"x")
    (message,) = consume_from(new_consumer, topic, 1)
    assert message.value() == b"x"


def test_a_consumer_finds_a_topic_that_is_created_after_it_asked(broker, producer, new_name, new_consumer):
    topic = new_name()
    consumer = new_consumer(**{"topic.metadata.refresh.interval.ms": 100})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.list_topics(topic, CLIENT_TIMEOUT_S).topics[topic].error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    produce(producer, topic, b"x")
    assert next_message(consumer).value() == b"x"


def test_records_survive_a_restart_under_a_connected_producer_and_consumer(broker_process):
    broker = broker_process()
    producer = new_producer(broker, **{"reconnect.backoff.max.ms": 200})
    produce(producer, "restarted", b"before")
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "not-used", "reconnect.backoff.max.ms": 200})
    consumer.assign([TopicPartition("restarted", 0, 0)])
    first = consume(consumer, 1)
    broker.restart()
    produce(producer, "restarted", b"after")
    message = next_message(consumer)
    consumer.close()
    assert (first[0].value(), message.value(), message.offset()) == (b"before", b"after", 1)
