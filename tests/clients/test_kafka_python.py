"""kafka-python against a real broker over a real socket."""

import time

from kafka import KafkaAdminClient

from tests.clients.behaviour import ClientBehaviour
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.libraries import KafkaPython


class TestKafkaPython(ClientBehaviour):
    make = KafkaPython

    def test_a_consumer_of_an_empty_topic_waits_without_spinning(self, library, new_topic):
        consumer = library.consumer(new_topic(), wait_ms=250)
        assert consumer.has_nothing(within_ms=1000)
        assert consumer.client.metrics()["consumer-fetch-manager-metrics"]["fetch-latency-avg"] > 200

    def test_a_consumer_finds_a_topic_that_is_created_after_it_asked(self, library, new_name):
        topic = new_name()
        consumer = library.consumer(topic, metadata_ms=200, allow_auto_create_topics=False)
        assert consumer.has_nothing(within_ms=300)
        library.producer().produce(topic, b"x")
        assert [record.value for record in consumer.take(1)] == [b"x"]

    def test_a_producer_finds_partitions_that_another_client_adds(self, library, new_topic):
        topic = new_topic(1)
        producer = library.producer(metadata_ms=100)
        assert producer.client.partitions_for(topic) == {0}
        library.started(KafkaAdminClient).create_partitions({topic: 3})
        deadline_s = time.monotonic() + CLIENT_TIMEOUT_S
        while producer.client.partitions_for(topic) != {0, 1, 2}:
            assert time.monotonic() < deadline_s
        assert producer.produce(topic, b"x", partition=2)[0].partition == 2
