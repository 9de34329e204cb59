"""Clients that ship telemetry, unasked and asked: librdkafka's and the Java client, each pushing as it does by default."""

import subprocess

import pytest
from confluent_kafka import Consumer, Producer

from benchmarks import kafka_jars
from odradek.protocol.otlp_metrics import MetricKind
from odradek.testing import Broker
from tests.campaigns.kafka_tools.kafka_broker import until

SENT = "org.apache.kafka.producer.record.send.total"
CONNECTIONS = "org.apache.kafka.producer.connection.creation.total"
RECORDS = 500
# librdkafka tells, on stderr, that it was given an id.
QUIET = {"log_level": 0}


@pytest.fixture
def broker():
    with Broker(topics={"orders": 1}, timeline=True) as broker:
        yield broker


def produce(broker, **config):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET, **config})
    produce_more(producer)
    return producer


def produce_more(producer):
    for _ in range(RECORDS):
        producer.produce("orders", b"an order")
    assert producer.flush(10) == 0


def test_librdkafka_pushes_what_it_is_asked_for(broker):
    broker.subscribe_client_metrics()
    producer = produce(broker, **{"client.id": "app"})
    broker.wait_for(client_id="app", pushes=3, metric=CONNECTIONS)
    measured = broker.client_metrics(client_id="app")
    assert {name.startswith("org.apache.kafka.producer.") for name in measured.names} == {True}
    assert "rdkafka" in measured.pushes[0].software
    assert measured.value("org.apache.kafka.producer.node.request.latency.max", node_id=1) is not None
    assert not any(push.is_terminating for push in measured.pushes)
    del producer


def test_librdkafka_pushes_once_more_when_it_ends(broker):
    broker.subscribe_client_metrics(interval_ms=60_000)
    producer = produce(broker, **{"client.id": "app"})
    until(lambda: len(broker.timeline.where(api="GetTelemetrySubscriptions")) > 0)
    # Answers come in order: it knows what it is asked for, and has a push to wait for. One that waits for an answer ends without.
    produce_more(producer)
    del producer
    assert [push.is_terminating for push in broker.client_metrics(client_id="app").pushes] == [True]


def test_only_the_clients_that_match_push(broker):
    broker.subscribe_client_metrics(match={"client_id": "app"})
    other = produce(broker, **{"client.id": "other"})
    producer = produce(broker, **{"client.id": "app"})
    broker.wait_for(client_id="app", pushes=2)
    assert {push.client_id for push in broker.client_metrics().pushes} == {"app"}
    del producer, other


def test_a_consumer_tells_its_group(broker):
    broker.subscribe_client_metrics("org.apache.kafka.consumer.")
    broker.produce("orders", ["an order"])
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "billing", "client.id": "reader", **QUIET}
    consumer = Consumer({**config, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert consumer.poll(10).value() == b"an order"
    broker.wait_for(client_id="reader", pushes=1)
    assert broker.client_metrics(client_id="reader").pushes[0].resource["group_id"] == "billing"
    consumer.close()


def test_clients_of_a_broker_without_subscriptions_do_not_ask(broker):
    producer = produce(broker, **{"client.id": "app"})
    del producer
    assert len(broker.timeline.where(api="Produce")) > 0
    assert len(broker.timeline.where(api="GetTelemetrySubscriptions")) == 0


def test_clients_that_no_subscription_matches_ask_once_and_push_nothing(broker):
    broker.subscribe_client_metrics(match={"client_id": "other"})
    producer = produce(broker, **{"client.id": "app"})
    until(lambda: len(broker.timeline.where(api="GetTelemetrySubscriptions")) > 0)
    del producer
    assert len(broker.timeline.where(api="GetTelemetrySubscriptions")) == 1
    assert len(broker.timeline.where(api="PushTelemetry")) == 0
    assert broker.client_metrics().pushes == ()


def test_a_client_whose_metrics_are_refused_goes_on(broker):
    broker.subscribe_client_metrics()
    broker.faults.add(api="PushTelemetry", error="INVALID_RECORD")
    producer = produce(broker, **{"client.id": "app"})
    assert len(broker.records("orders")) == RECORDS
    del producer


def test_the_java_client_pushes_what_it_is_asked_for(broker):
    broker.subscribe_client_metrics("org.apache.kafka.producer.record")
    classpath = f"{kafka_jars.libraries()}/*"
    command = [kafka_jars.java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classpath]
    command += ["org.apache.kafka.tools.ConsoleProducer", "--topic", "orders", "--bootstrap-server", broker.bootstrap_servers]
    command += ["--command-property", "client.id=java", "--command-property", "linger.ms=0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdin.write("an order\n" * RECORDS)
        process.stdin.flush()
        pushes = 0
        # All records are in what it has counted from push to push.
        while broker.client_metrics(client_id="java").total(SENT) < RECORDS:
            pushes += 1
            broker.wait_for(client_id="java", pushes=pushes, within=30)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    measured = broker.client_metrics(client_id="java")
    assert measured.pushes[0].software == "apache-kafka-java 4.4.0"
    # It says that it ends only if it has the time.
    assert not any(push.is_terminating for push in measured.pushes[:-1])
    assert {name.startswith("org.apache.kafka.producer.record") for name in measured.names} == {True}
    assert measured.total(SENT) == RECORDS
    assert {point.kind for push in measured.pushes for point in push.points if point.name == SENT} == {MetricKind.SUM}
