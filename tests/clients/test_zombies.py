"""Consume-transform-produce with a zombie: it is frozen with its transaction open, and wakes when its partition is another's.

Librdkafka and kafka-python tell the broker their place in the group with the offsets (KIP-447). Aiokafka does not, and is fenced
by the transactional id of the partition.
"""

from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from odradek.testing import Broker
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.clients.conftest import CLIENT_TIMEOUT_S
from tests.clients.transformer import SESSION_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS
from tests.clients.transformer_process import TransformerProcess, python_program

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
SOURCE, TARGET, GROUP = "source", "target", "transformers of source"


@pytest.fixture
def broker():
    """A broker with one record to be transformed."""
    with Broker(topics={SOURCE: 1, TARGET: 1}, configs=SETTINGS, timeline=True) as broker:
        broker.produce(SOURCE, ["in"])
        yield broker


@pytest.fixture
def new_consumer(broker):
    """Makes consumers of librdkafka that read what is committed, closed at the end."""
    consumers = []

    def make(**config):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **config,
            }
        )
        consumers.append(consumer)
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()


def read_target(new_consumer):
    """What a reader of what is committed sees, and the committed offset of the source."""
    consumer = new_consumer(**{"enable.partition.eof": True})
    consumer.assign([TopicPartition(TARGET, 0, 0)])
    values = []
    while (message := consumer.poll(CLIENT_TIMEOUT_S)) is not None and message.error() is None:
        values.append(message.value())
    (committed,) = consumer.committed([TopicPartition(SOURCE, 0)], CLIENT_TIMEOUT_S)
    return values, committed.offset


def end_of_a_zombie(broker, make, step):
    """The end of a transformer that is frozen before this step, and wakes when another one has transformed the record."""

    def transformer(name, step):
        program = python_program(make)
        return TransformerProcess(stack, [*program, name, broker.bootstrap_servers, SOURCE, TARGET, step])

    with ExitStack() as stack:
        zombie = transformer("zombie", step)
        zombie.freeze_where_it_waits()
        owner = transformer("owner", "none")
        broker.clock.advance(milliseconds=SESSION_TIMEOUT_MS[step])
        broker.wait_for(group=GROUP, members=1, state="Stable")
        if step == "commit":
            # Aiokafka's transaction ends before it asks: another producer has its id.
            until(lambda: make == "aiokafka" or broker.timeline.where(api="OffsetFetch", error="UNSTABLE_OFFSET_COMMIT"))
            broker.clock.advance(milliseconds=TRANSACTION_TIMEOUT_MS[step])
        assert owner.run_to_its_end() == "committed"
        zombie.thaw()
        return zombie.run_to_its_end()


@pytest.mark.parametrize(
    ("make", "refusal"),
    [("librdkafka", "UNKNOWN_MEMBER_ID"), ("kafka-python", "UnknownMemberIdError"), ("aiokafka", "ProducerFenced")],
)
def test_a_zombie_whose_partition_has_moved_cannot_send_offsets(broker, new_consumer, make, refusal):
    assert end_of_a_zombie(broker, make, "offsets") == refusal
    assert read_target(new_consumer) == ([b"owner"], 1)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [("librdkafka", "_FENCED"), ("kafka-python", "ProducerFencedError"), ("aiokafka", "ProducerFenced")],
)
def test_a_zombie_that_had_sent_its_offsets_holds_the_new_owner_up_only_until_it_is_fenced(broker, new_consumer, make, refusal):
    assert end_of_a_zombie(broker, make, "commit") == refusal
    assert read_target(new_consumer) == ([b"owner"], 1)


def test_a_member_that_comes_with_its_place_in_an_earlier_generation_is_refused(broker, new_consumer):
    first = new_consumer()
    first.subscribe([SOURCE])
    message = first.poll(CLIENT_TIMEOUT_S)
    metadata = first.consumer_group_metadata()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "late", "linger.ms": 0})
    producer.init_transactions(CLIENT_TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(TARGET, b"late", partition=0)
    revoked = []
    second = new_consumer()
    first.subscribe([SOURCE], on_revoke=lambda *_: revoked.append(True))
    second.subscribe([SOURCE])
    while not (revoked and first.consumer_group_metadata() != metadata):
        first.poll(0.05)
        second.poll(0.05)
    offsets = [TopicPartition(SOURCE, 0, message.offset() + 1)]
    with pytest.raises(KafkaException) as caught:
        producer.send_offsets_to_transaction(offsets, metadata, CLIENT_TIMEOUT_S)
    assert caught.value.args[0].name() == "ILLEGAL_GENERATION"
    producer.abort_transaction(CLIENT_TIMEOUT_S)
    assert read_target(new_consumer) == ([], -1001)
