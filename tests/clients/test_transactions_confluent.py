"""Transactions by librdkafka (confluent-kafka): what is committed is read, what is aborted is not, and zombies are fenced."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing import Broker
from tests.clients.conftest import CLIENT_TIMEOUT_S


@pytest.fixture
def new_producer(broker, new_name):
    """Makes producers that have their transactions initialized."""

    def make(transactional_id=None, address=broker.address):
        name = transactional_id or f"id-{new_name()}"
        producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "transactional.id": name})
        producer.init_transactions(CLIENT_TIMEOUT_S)
        return producer

    return make


@pytest.fixture
def new_consumer(broker, new_name):
    """Makes consumers of a topic's partition 0, closed at the end."""
    consumers = []

    def make(topic, isolation="read_committed", group=None, address=broker.address):
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group or new_name(),
                "isolation.level": isolation,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumers.append(consumer)
        consumer.assign([TopicPartition(topic, 0, 0)])
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()


def read_to_end(consumer):
    """The values up to where the consumer sees the partition's end."""
    values = []
    while True:
        message = consumer.poll(CLIENT_TIMEOUT_S)
        assert message is not None, "neither a record nor the end"
        if message.error() is not None:
            return values
        values.append(message.value())


def write(producer, topic, *values):
    for value in values:
        producer.produce(topic, value, partition=0)


@pytest.fixture
def topic(broker, new_name):
    name = new_name()
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(CLIENT_TIMEOUT_S)
    return name


def test_committed_transactions_are_read_and_aborted_ones_are_not(new_producer, new_consumer, topic):
    producer = new_producer()
    for number in range(6):
        producer.begin_transaction()
        write(producer, topic, b"a%d" % number, b"b%d" % number)
        if number % 2:
            producer.abort_transaction(CLIENT_TIMEOUT_S)
        else:
            producer.commit_transaction(CLIENT_TIMEOUT_S)
    assert read_to_end(new_consumer(topic)) == [b"a0", b"b0", b"a2", b"b2", b"a4", b"b4"]


def test_an_open_transaction_is_not_read_until_it_is_committed(new_producer, new_consumer, topic):
    producer = new_producer()
    producer.begin_transaction()
    write(producer, topic, b"open")
    producer.flush(CLIENT_TIMEOUT_S)
    assert read_to_end(new_consumer(topic, "read_uncommitted")) == [b"open"]
    assert read_to_end(new_consumer(topic)) == []
    producer.commit_transaction(CLIENT_TIMEOUT_S)
    assert read_to_end(new_consumer(topic)) == [b"open"]


def test_a_producer_whose_id_was_taken_over_is_fenced(new_producer, new_consumer, topic, new_name):
    name = new_name()
    zombie = new_producer(name)
    zombie.begin_transaction()
    write(zombie, topic, b"zombie")
    zombie.flush(CLIENT_TIMEOUT_S)
    successor = new_producer(name)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction(CLIENT_TIMEOUT_S)
    assert caught.value.args[0].fatal()
    successor.begin_transaction()
    write(successor, topic, b"successor")
    successor.commit_transaction(CLIENT_TIMEOUT_S)
    assert read_to_end(new_consumer(topic)) == [b"successor"]


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_are_committed_with_their_transaction_or_not_at_all(new_producer, new_consumer, topic, new_name, is_commit):
    consumer = new_consumer(topic, group=new_name())
    producer = new_producer()
    producer.begin_transaction()
    write(producer, topic, b"output")
    offsets = [TopicPartition(topic, 0, 7)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CLIENT_TIMEOUT_S)
    if is_commit:
        producer.commit_transaction(CLIENT_TIMEOUT_S)
    else:
        producer.abort_transaction(CLIENT_TIMEOUT_S)
    (found,) = consumer.committed([TopicPartition(topic, 0)], CLIENT_TIMEOUT_S)
    assert found.offset == (7 if is_commit else -1001)


def test_a_transaction_past_its_timeout_is_aborted(new_producer, new_consumer):
    with Broker(topics={"late": 1}) as other:
        producer = new_producer(address=other.bootstrap_servers)
        producer.begin_transaction()
        write(producer, "late", b"late")
        producer.flush(CLIENT_TIMEOUT_S)
        consumer = new_consumer("late", address=other.bootstrap_servers)
        assert read_to_end(consumer) == []
        # librdkafka's own timeout, and the interval at which the broker looks.
        other.clock.advance(seconds=70)
        # The end of what can be read is behind the marker now.
        assert read_to_end(consumer) == []
        assert consumer.position([TopicPartition("late", 0)])[0].offset == 2
        with pytest.raises(KafkaException):
            producer.commit_transaction(CLIENT_TIMEOUT_S)


def test_transactions_outlive_a_restart(broker_process, new_producer, new_consumer, new_name):
    name = new_name()
    mortal = broker_process()
    producer = new_producer(name, mortal.address)
    producer.begin_transaction()
    write(producer, name, b"open")
    producer.flush(CLIENT_TIMEOUT_S)
    mortal.restart()
    successor = new_producer(name, mortal.address)
    successor.begin_transaction()
    write(successor, name, b"second")
    successor.commit_transaction(CLIENT_TIMEOUT_S)
    assert read_to_end(new_consumer(name, address=mortal.address)) == [b"second"]
