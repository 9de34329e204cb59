"""Transactions by each library: what is committed is read, what is aborted is not, and zombies are fenced."""

from contextlib import ExitStack

import pytest
from confluent_kafka import TopicPartition

from odradek.testing import Broker
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.libraries import Aiokafka, KafkaPython, Refused
from tests.clients.librdkafka import Librdkafka

END = b"end"


@pytest.fixture(params=[Librdkafka, KafkaPython, Aiokafka], ids=lambda make: make.__name__)
def library(broker, request):
    with ExitStack() as stack:
        yield request.param(broker.address, stack)


@pytest.fixture
def librdkafka(broker):
    with ExitStack() as stack:
        yield Librdkafka(broker.address, stack)


def read_and_end(library, topic):
    """The values up to END, as a reader of what is committed sees them."""
    producer = library.transactional(f"ends-{topic}")
    producer.begin()
    producer.produce(topic, END, partition=0)
    producer.commit()
    consumer = library.consumer(topic, isolation="read_committed")
    return list(iter(lambda: consumer.take(1)[0].value, END))


def test_committed_transactions_are_read_and_aborted_ones_are_not(library, new_topic, new_name):
    topic = new_topic()
    producer = library.transactional(new_name())
    for number in range(6):
        producer.begin()
        producer.produce(topic, b"a%d" % number, b"b%d" % number, partition=0)
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert read_and_end(library, topic) == [b"a0", b"b0", b"a2", b"b2", b"a4", b"b4"]


def test_a_producer_whose_id_was_taken_over_is_fenced(library, new_topic, new_name):
    topic, name = new_topic(), new_name()
    zombie = library.transactional(name)
    zombie.begin()
    zombie.produce(topic, b"zombie", partition=0)
    successor = library.transactional(name)
    with pytest.raises(Refused, match=f"^{library.fenced}$"):
        zombie.commit()
    successor.begin()
    successor.produce(topic, b"successor", partition=0)
    successor.commit()
    assert read_and_end(library, topic) == [b"successor"]


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_are_committed_with_their_transaction_or_not_at_all(library, new_topic, new_name, is_commit):
    topic, group = new_topic(), new_name()
    producer = library.transactional(new_name())
    producer.begin()
    producer.produce(topic, b"output", partition=0)
    producer.send_offset(group, topic, 7)
    if is_commit:
        producer.commit()
    else:
        producer.abort()
    assert library.committed(group, topic) == (7 if is_commit else None)


# librdkafka tells where it sees the end of a partition.


def read_to_end(library, topic, isolation="read_committed"):
    """The values up to where a consumer sees the partition's end, and the consumer."""
    consumer = library.consumer(topic, isolation=isolation, **{"enable.partition.eof": True})
    return values_to_end(consumer), consumer


def values_to_end(consumer):
    messages = iter(lambda: consumer.client.poll(CLIENT_TIMEOUT_S), None)
    values = []
    for message in messages:
        if message.error() is not None:
            return values
        values.append(message.value())
    pytest.fail("neither a record nor the end")


def test_an_open_transaction_is_not_read_until_it_is_committed(librdkafka, new_topic, new_name):
    topic = new_topic()
    producer = librdkafka.transactional(new_name())
    producer.begin()
    producer.produce(topic, b"open", partition=0)
    assert read_to_end(librdkafka, topic, "read_uncommitted")[0] == [b"open"]
    assert read_to_end(librdkafka, topic)[0] == []
    producer.commit()
    assert read_to_end(librdkafka, topic)[0] == [b"open"]


def test_a_transaction_past_its_timeout_is_aborted():
    with Broker(topics={"late": 1}) as broker, ExitStack() as stack:
        library = Librdkafka(broker.bootstrap_servers, stack)
        producer = library.transactional("late")
        producer.begin()
        producer.produce("late", b"late", partition=0)
        values, consumer = read_to_end(library, "late")
        assert values == []
        # librdkafka's own timeout, and the interval at which the broker looks.
        broker.clock.advance(seconds=70)
        # The end of what can be read is behind the marker now.
        assert values_to_end(consumer) == []
        assert consumer.client.position([TopicPartition("late", 0)])[0].offset == 2
        with pytest.raises(Refused):
            producer.commit()


def test_transactions_outlive_a_restart(broker_process, new_name):
    broker, name = broker_process(), new_name()
    with ExitStack() as stack:
        library = Librdkafka(broker.address, stack)
        producer = library.transactional(name)
        producer.begin()
        producer.produce(name, b"open", partition=0)
        broker.restart()
        successor = library.transactional(name)
        successor.begin()
        successor.produce(name, b"second", partition=0)
        successor.commit()
        assert read_to_end(library, name)[0] == [b"second"]
