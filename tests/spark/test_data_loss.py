"""Records that are gone before Spark has read them: with failOnDataLoss an error, without it no obstacle."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException

from tests.spark.kafka import values
from tests.spark.spark_client import offsets, read


def test_a_batch_from_before_the_logs_start_fails(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(20))
    kafka.delete_records(topic, before_offset=8)
    with pytest.raises(Py4JJavaError, match="data may have been lost"):
        read(client.batch(subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}', failOnDataLoss=True))


def test_a_batch_from_before_the_logs_start_goes_on_with_what_is_left(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(20))
    kafka.delete_records(topic, before_offset=8)
    found = read(client.batch(subscribe=topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}', failOnDataLoss=False))
    assert found == values(12, start=8)


def test_the_earliest_offset_is_where_deleted_records_end(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(20))
    kafka.delete_records(topic, before_offset=8)
    assert offsets(read(client.batch(subscribe=topic))) == list(range(8, 20))


def stop_a_stream_and_delete_what_it_has_yet_to_read(kafka, client, table, topic):
    """The table has offsets 0 to 9, the topic 15 to 19."""
    kafka.create_topic(topic)
    kafka.send(topic, values(10))
    table.fill_to_the_end(client.stream(subscribe=topic))
    kafka.send(topic, values(10, start=10))
    kafka.delete_records(topic, before_offset=15)


def test_a_stream_that_missed_records_fails(kafka, client, table, topic):
    stop_a_stream_and_delete_what_it_has_yet_to_read(kafka, client, table, topic)
    with pytest.raises(StreamingQueryException, match="data may have been lost"):
        table.fill_to_the_end(client.stream(subscribe=topic, failOnDataLoss=True))
    assert offsets(table.records()) == list(range(10))


def test_a_stream_that_missed_records_goes_on_with_what_is_left(kafka, client, table, topic):
    stop_a_stream_and_delete_what_it_has_yet_to_read(kafka, client, table, topic)
    table.fill_to_the_end(client.stream(subscribe=topic, failOnDataLoss=False))
    assert offsets(table.records()) == [*range(10), *range(15, 20)]


def stop_a_stream_and_delete_one_of_its_topics(kafka, client, table, topic):
    """The table has ten records of each topic, the one that stays has ten more."""
    for suffix in ("gone", "stays"):
        kafka.send(kafka.create_topic(topic + suffix), values(10))
    table.fill_to_the_end(client.stream(subscribePattern=topic + ".*"))
    kafka.delete_topic(topic + "gone")
    kafka.send(topic + "stays", values(10, start=10))


def test_a_stream_whose_topic_was_deleted_fails(kafka, client, table, topic):
    stop_a_stream_and_delete_one_of_its_topics(kafka, client, table, topic)
    with pytest.raises(StreamingQueryException, match=r"Partitions Set\(.*\) have been deleted"):
        table.fill_to_the_end(client.stream(subscribePattern=topic + ".*", failOnDataLoss=True))


def test_a_stream_whose_topic_was_deleted_goes_on_with_the_others(kafka, client, table, topic):
    stop_a_stream_and_delete_one_of_its_topics(kafka, client, table, topic)
    table.fill_to_the_end(client.stream(subscribePattern=topic + ".*", failOnDataLoss=False))
    assert table.records() == [*values(10), *values(20)]


def test_a_topic_deleted_and_created_anew_is_not_taken_for_the_old_one(kafka, client, table, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(10))
    table.fill_to_the_end(client.stream(subscribe=topic))
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    kafka.send(topic, values(3))
    with pytest.raises(StreamingQueryException, match="data may have been lost"):
        table.fill_to_the_end(client.stream(subscribe=topic, failOnDataLoss=True))
    assert read(client.batch(subscribe=topic)) == values(3)
