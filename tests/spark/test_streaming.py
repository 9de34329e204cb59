"""Spark's streaming source and sink, on a broker that stays up: what is there is taken, what arrives is taken, once."""

from tests.spark.kafka import values
from tests.spark.spark_client import offsets, read


def test_a_stream_of_what_is_there_takes_it_and_ends(kafka, client, table, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [*values(30, partition=0), *values(20, partition=1)]
    kafka.send(topic, sent)
    table.fill_to_the_end(client.stream(subscribe=topic))
    assert table.records() == sent


def test_a_resumed_stream_takes_only_what_is_new(kafka, client, table, topic):
    kafka.create_topic(topic)
    for round_ in range(3):
        kafka.send(topic, values(10, start=10 * round_))
        table.fill_to_the_end(client.stream(subscribe=topic))
        assert offsets(table.records()) == list(range(10 * (round_ + 1)))


def test_a_running_stream_takes_what_arrives(kafka, client, table, topic):
    kafka.create_topic(topic)
    query = table.fill(client.stream(subscribe=topic), processingTime="0 seconds")
    for round_ in range(3):
        kafka.send(topic, values(10, start=10 * round_))
        query.processAllAvailable()
        assert table.records() == values(10 * (round_ + 1))
    query.stop()


def test_a_stream_from_the_latest_offset_leaves_out_what_was_there(kafka, client, table, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(10))
    query = table.fill(client.stream(subscribe=topic, startingOffsets="latest"))
    query.processAllAvailable()
    kafka.send(topic, values(5, start=10))
    query.processAllAvailable()
    query.stop()
    assert offsets(table.records()) == [10, 11, 12, 13, 14]


def test_no_batch_of_a_stream_has_more_than_it_may(kafka, client, table, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [*values(35, partition=0), *values(35, partition=1)]
    kafka.send(topic, sent)
    query = table.fill_to_the_end(client.stream(subscribe=topic, maxOffsetsPerTrigger=20))
    assert [batch.numInputRows for batch in query.recentProgress if batch.numInputRows] == [20, 20, 20, 10]
    assert table.records() == sent


def test_a_running_stream_takes_partitions_and_topics_that_are_added(kafka, client, table, topic):
    first = kafka.create_topic(topic + "a")
    query = table.fill(client.stream(subscribePattern=topic + ".*"))
    kafka.send(first, values(5))
    query.processAllAvailable()
    kafka.add_partitions(first, total=2)
    kafka.send(first, values(5, start=5, partition=1))
    query.processAllAvailable()
    kafka.send(kafka.create_topic(topic + "b"), values(5, start=10))
    query.processAllAvailable()
    query.stop()
    assert table.records() == [*values(5), *values(5, start=5, partition=1), *values(5, start=10)]


def test_a_stream_into_a_topic_copies_every_record(kafka, client, tmp_path, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [*values(50, partition=0), *values(50, partition=1)]
    kafka.send(topic, sent)
    kafka.create_topic(topic + "copy", partitions=2)
    rows = client.stream(subscribe=topic).select("key", "value", "partition")
    query = client.copy(rows, tmp_path, topic + "copy", availableNow=True)
    assert query.awaitTermination(60)
    assert read(client.batch(subscribe=topic + "copy")) == sent
