"""A stream of Spark's beside consumer groups: Spark keeps its place in a checkpoint, and neither is in the way of the other."""

from contextlib import ExitStack

import pytest

from tests.clients.groups.group import Group
from tests.spark.kafka import values
from tests.spark.spark_client import offsets

PARTITIONS = 2


@pytest.fixture
def group_of(topic):
    """Makes the one group on the topic; its members are stopped and it is checked at the end."""
    groups = []
    with ExitStack() as stack:

        def make(broker, per_partition):
            group = Group(broker, topic, PARTITIONS, stack)
            group.ends = dict.fromkeys(range(PARTITIONS), per_partition)
            groups.append(group)
            return group

        yield make
    for group in groups:
        group.check()


def numbered(start, end):
    return [record for partition in range(PARTITIONS) for record in values(end - start, start, partition)]


def committed(group):
    return sum(group.observer.committed(group.group_id).values())


def test_a_stream_reads_what_a_group_with_lag_has_yet_to_read(broker, kafka, client, table, topic, group_of):
    """The group stalls with a member that holds everything; the stream goes by, and the group catches up from where it was."""
    kafka.create_topic(topic, partitions=PARTITIONS)
    kafka.send(topic, numbered(0, 20))
    group = group_of(broker, 20)
    lagging = group.member("kafka-python", "lagging")
    group.wait_until_processed()
    lagging.stall()
    lagging.wait_until_held()
    query = table.fill(client.stream(subscribe=topic, maxOffsetsPerTrigger=20), processingTime="0 seconds")
    kafka.send(topic, numbered(20, 50))
    query.processAllAvailable()
    query.stop()
    assert table.records() == numbered(0, 50)
    assert committed(group) == PARTITIONS * 20
    lagging.resume()
    group.ends = dict.fromkeys(range(PARTITIONS), 50)
    group.wait_until_processed()
    assert group.journal.repeated() == {}


def test_a_stream_resumes_by_its_checkpoint_whatever_a_group_has_committed(broker, kafka, client, table, topic, group_of):
    kafka.create_topic(topic, partitions=PARTITIONS)
    kafka.send(topic, numbered(0, 10))
    table.fill_to_the_end(client.stream(subscribe=topic))
    kafka.send(topic, numbered(10, 30))
    group = group_of(broker, 30)
    group.member("librdkafka", "ahead")
    group.wait_until_processed()
    table.fill_to_the_end(client.stream(subscribe=topic))
    assert table.records() == numbered(0, 30)


def test_a_stream_with_a_groups_name_leaves_that_group_as_it_is(broker, kafka, client, table, topic, group_of):
    """Spark says the group's name when it fetches and neither joins nor commits."""
    kafka.create_topic(topic, partitions=PARTITIONS)
    kafka.send(topic, numbered(0, 10))
    group = group_of(broker, 10)
    group.member("librdkafka", "member")
    group.wait_until_processed()
    generation = group.generation()
    table.fill_to_the_end(client.stream(subscribe=topic, **{"kafka.group.id": group.group_id}))
    assert table.records() == numbered(0, 10)
    assert (group.generation(), committed(group)) == (generation, PARTITIONS * 10)


def test_a_stream_and_a_group_go_on_over_the_brokers_kill(broker_process, kafka, spark, client, table, topic, group_of):
    own = broker_process()
    own_kafka = type(kafka)(own.address)
    own_client = type(client)(spark, own.address)
    own_kafka.create_topic(topic, partitions=PARTITIONS)
    own_kafka.send(topic, numbered(0, 50))
    group = group_of(own, 50)
    for name in "ab":
        group.member("librdkafka", name)
    group.wait_until_shared("a", "b")
    group.wait_until_processed()
    generation = group.generation()
    query = table.fill(own_client.stream(subscribe=topic, maxOffsetsPerTrigger=20))
    own.kill9()
    own.start()
    own_kafka.send(topic, numbered(50, 80))
    query.processAllAvailable()
    query.stop()
    group.ends = dict.fromkeys(range(PARTITIONS), 80)
    group.wait_until_processed()
    assert [offsets(table.records(), partition) for partition in range(PARTITIONS)] == [list(range(80))] * PARTITIONS
    assert group.generation() == generation
