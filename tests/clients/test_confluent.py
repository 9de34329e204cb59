"""librdkafka, by way of confluent-kafka: producing and consuming against a real broker over a real socket."""

import json
import time
from contextlib import ExitStack

import pytest
from confluent_kafka import KafkaError

from tests.clients.behaviour import ClientBehaviour
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.libraries import Refused
from tests.clients.librdkafka import Librdkafka


def next_value(consumer):
    """The next message's; errors that a client lives through, such as a broker that is away, are passed over."""
    deadline_s = time.monotonic() + CLIENT_TIMEOUT_S
    while (message := consumer.client.poll(0.5)) is None or message.error():
        assert time.monotonic() < deadline_s
    return message.value()


def count_fetches(statistics):
    return sum(broker["req"].get("Fetch", 0) for broker in statistics["brokers"].values())


class TestLibrdkafka(ClientBehaviour):
    make = Librdkafka

    @pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    def test_a_topics_own_codec_is_no_matter_to_clients(self, library, new_topic, codec):
        topic = new_topic(config={"compression.type": codec})
        values = [b"%d" % number for number in range(20)]
        library.producer().produce(topic, *values)
        assert [record.value for record in library.consumer(topic).take(20)] == values

    def test_a_partition_that_is_not_there_is_refused(self, library, new_topic):
        with pytest.raises(Refused, match=r"^_UNKNOWN_PARTITION$"):
            library.producer().produce(new_topic(), b"x", partition=7)

    def test_a_consumer_is_told_when_it_reaches_the_end(self, library, new_topic):
        topic = new_topic()
        library.producer().produce(topic, b"x")
        consumer = library.consumer(topic, **{"enable.partition.eof": True})
        assert [record.value for record in consumer.take(1)] == [b"x"]
        end = consumer.client.poll(CLIENT_TIMEOUT_S)
        assert (end.error().code(), end.offset()) == (KafkaError._PARTITION_EOF, 1)

    def test_a_consumer_of_an_empty_topic_waits_without_spinning(self, library, new_topic):
        fetches = []
        statistics = {"statistics.interval.ms": 100, "stats_cb": lambda text: fetches.append(count_fetches(json.loads(text)))}
        consumer = library.consumer(new_topic(), wait_ms=250, **statistics)
        assert consumer.has_nothing(within_ms=1500)
        assert 1 <= fetches[-1] <= 8

    def test_a_consumer_finds_a_topic_that_is_created_after_it_asked(self, library, new_name):
        topic = new_name()
        consumer = library.consumer(topic, metadata_ms=100)
        told = consumer.client.list_topics(topic, CLIENT_TIMEOUT_S).topics[topic]
        assert told.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        library.producer().produce(topic, b"x")
        assert next_value(consumer) == b"x"


def test_records_survive_a_restart_under_a_connected_producer_and_consumer(broker_process):
    broker = broker_process()
    with ExitStack() as stack:
        library = Librdkafka(broker.address, stack)
        producer = library.producer(**{"reconnect.backoff.max.ms": 200})
        producer.produce("restarted", b"before")
        consumer = library.consumer("restarted", **{"reconnect.backoff.max.ms": 200})
        assert [record.value for record in consumer.take(1)] == [b"before"]
        broker.restart()
        assert [each.offset for each in producer.produce("restarted", b"after")] == [1]
        assert next_value(consumer) == b"after"
