"""What the metrics say of quotas."""

import pytest

from odradek.broker.metadata.client_quotas import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from odradek.broker.metrics.quotas import QUOTA_SECTION
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch

from .bed import Client, broker_with, quota, told_ms


@pytest.fixture
def broker():
    return broker_with("t")


def read(broker):
    return {metric.name: dict(samples) for metric, samples in QUOTA_SECTION.read(broker)}


def test_nothing_is_told_without_a_quota(broker):
    Client(broker).produce(build_batch([Record(timestamp=0, value=b"v")]))
    assert set(map(len, read(broker).values())) == {0}


def test_a_throttled_producer_is_told_by_the_entity_of_its_quota(broker):
    quota(broker, PRODUCER_BYTE_RATE, 1_000, client_id="client")
    client = Client(broker)
    throttle_ms = told_ms(client.produce(build_batch([Record(timestamp=0, value=bytes(12_000))])))
    told = read(broker)
    assert told["kafka_server_produce_byte_rate"] == {("", "client"): client.sent_bytes / 10}
    assert told["kafka_server_produce_throttle_time"] == {("", "client"): throttle_ms}
    assert told["kafka_server_produce_queue_size"] == {(): 1}
    assert told["kafka_server_fetch_queue_size"] == {(): 0}
    broker.clock.advance(throttle_ms)
    assert read(broker)["kafka_server_produce_queue_size"] == {(): 0}


def test_tokens_are_told_as_they_are_now(broker):
    quota(broker, CONTROLLER_MUTATION_RATE, 1, user="ANONYMOUS")
    topic = {"name": "a", "num_partitions": 15, "replication_factor": 1}
    Client(broker).ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5_000)
    assert read(broker)["kafka_server_controllermutation_tokens"] == {("ANONYMOUS", ""): -4}
    broker.clock.advance(1_000)
    told = read(broker)
    assert told["kafka_server_controllermutation_tokens"] == {("ANONYMOUS", ""): -3}
    assert told["kafka_server_controllermutation_mutation_rate"] == {("ANONYMOUS", ""): pytest.approx(15 / 31)}


def test_exempt_time_is_told_apart(broker):
    quota(broker, REQUEST_PERCENTAGE, 50, user=None)

    class Busy:
        def admit(self, context, request):
            broker.clock.advance(60)

        def release(self, context, response):
            return response

    broker.dispatcher.add_gate(Busy())
    Client(broker).produce(build_batch([Record(timestamp=0, value=b"v")]), acks=0)
    told = read(broker)
    assert told["kafka_server_request_request_time"] == {}
    assert told["kafka_server_request_exempt_request_time"] == {(): pytest.approx(0.2)}
