"""Spark with ``kafka.isolation.level=read_committed``: what was committed, and nothing else, over gaps of every kind.

Offsets of markers and of aborted records are there and give no record. A reader that takes a gap for loss fails
(failOnDataLoss is true unless a test says otherwise), one that waits for what is in it hangs.
"""

import json
from itertools import combinations

import pytest
from pyspark.sql.functions import count, lit, max, min  # noqa: A004  # as Spark names them

from tests.spark.kafka import Kafka, Record, values
from tests.spark.spark_client import SparkClient, offsets, read

COMMITTED = {"kafka.isolation.level": "read_committed", "failOnDataLoss": True}


def one(value: bytes, partition: int = 0) -> Record:
    return Record(value, partition=partition)


def write_a_history(kafka, topic):
    """Offsets of partition 0: 2 committed, marker; 3 aborted, marker; 1 outside of any; 2 committed, marker; 2 aborted, marker.

    Gives the values that were committed and their offsets.
    """
    writer = kafka.transactions(topic)
    writer.commit(one(b"a"), one(b"b"))
    writer.abort(one(b"never"), one(b"never"), one(b"never"))
    kafka.send(topic, [one(b"plain")])
    writer.commit(one(b"c"), one(b"d"))
    writer.abort(one(b"never"), one(b"never"))
    return {0: b"a", 1: b"b", 7: b"plain", 8: b"c", 9: b"d"}


END_OF_HISTORY = 14


def by_offset(records):
    return {record.offset: record.value for record in records}


def test_a_batch_has_what_was_committed_at_the_offsets_it_was_committed_at(kafka, client, topic):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    assert by_offset(read(client.batch(subscribe=topic, **COMMITTED))) == committed
    assert by_offset(kafka.records(topic)) == committed


def test_counts_and_bounds_are_of_what_was_committed(kafka, client, topic):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    frame = client.batch(subscribe=topic, **COMMITTED)
    assert frame.count() == len(committed)
    (row,) = frame.agg(count(lit(1)), min("offset"), max("offset")).collect()
    assert tuple(row) == (len(committed), 0, 9)


def test_without_the_option_aborted_records_are_read_too(kafka, client, topic):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    found = by_offset(read(client.batch(subscribe=topic)))
    assert [offset for offset, value in found.items() if value == b"never"] == [3, 4, 5, 11, 12]
    assert {offset: value for offset, value in found.items() if value != b"never"} == committed


def test_any_two_offsets_bound_a_batch_be_they_of_markers_or_aborted_records(kafka, client, topic):
    bounds = dict(enumerate(combinations(range(0, END_OF_HISTORY + 1, 2), 2)))
    kafka.create_topic(topic, partitions=len(bounds))
    writer = kafka.transactions(topic)
    everywhere = [lambda value, partition=partition: one(value, partition) for partition in bounds]
    for size, commit in ((2, True), (3, False), (2, True), (3, False)):
        records = [make(b"%d" % commit) for make in everywhere for _ in range(size)]
        (writer.commit if commit else writer.abort)(*records)
    committed = [0, 1, 7, 8]
    found = read(
        client.batch(
            subscribe=topic,
            startingOffsets=json.dumps({topic: {str(partition): start for partition, (start, _) in bounds.items()}}),
            endingOffsets=json.dumps({topic: {str(partition): end for partition, (_, end) in bounds.items()}}),
            **COMMITTED,
        )
    )
    assert {record.value for record in found} == {b"1"}
    for partition, (start, end) in bounds.items():
        assert offsets(found, partition) == [offset for offset in committed if start <= offset < end]


def test_a_batch_in_many_pieces_has_every_committed_record_once(kafka, client, topic):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    found = read(client.batch(subscribe=topic, minPartitions=END_OF_HISTORY, **COMMITTED))
    assert by_offset(found) == committed
    assert len(found) == len(committed)


def test_a_topic_of_nothing_but_aborted_records_is_an_empty_batch(kafka, client, topic):
    kafka.create_topic(topic, partitions=2)
    writer = kafka.transactions(topic)
    for _ in range(3):
        writer.abort(*values(400, partition=0), *values(1, partition=1))
    assert read(client.batch(subscribe=topic, **COMMITTED)) == []


def test_a_batch_ends_before_the_first_open_transaction(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.transactions(topic).commit(one(b"before"))
    late, early = kafka.transactions(topic), kafka.transactions(topic)
    late.begin(one(b"open"))
    early.commit(one(b"behind"))
    assert by_offset(read(client.batch(subscribe=topic, **COMMITTED))) == {0: b"before"}
    late.end(commit=True)
    assert by_offset(read(client.batch(subscribe=topic, **COMMITTED))) == {0: b"before", 2: b"open", 3: b"behind"}


def test_a_log_that_begins_amid_an_aborted_transaction_shows_none_of_it(kafka, client, topic):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    kafka.delete_records(topic, before_offset=4)
    found = by_offset(read(client.batch(subscribe=topic, **COMMITTED)))
    assert found == {offset: value for offset, value in committed.items() if offset >= 4}


def test_a_stream_goes_over_gaps_in_batches_that_may_be_all_gap(kafka, client, table, topic):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    query = table.fill_to_the_end(client.stream(subscribe=topic, maxOffsetsPerTrigger=2, **COMMITTED))
    assert by_offset(table.records()) == committed
    # Two offsets each, to the end: markers and aborted records have theirs.
    assert [batch.numInputRows for batch in query.recentProgress][: END_OF_HISTORY // 2] == [2, 0, 0, 1, 2, 0, 0]


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_a_stream_ends_before_an_open_transaction_and_takes_it_later_if_it_was_committed(kafka, client, table, topic, commit):
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    late = kafka.transactions(topic)
    late.begin(one(b"open"))
    kafka.transactions(topic).commit(one(b"behind"))
    table.fill_to_the_end(client.stream(subscribe=topic, **COMMITTED))
    assert by_offset(table.records()) == committed
    late.end(commit=commit)
    table.fill_to_the_end(client.stream(subscribe=topic, **COMMITTED))
    opened = {END_OF_HISTORY: b"open"} if commit else {}
    assert by_offset(table.records()) == {**committed, **opened, END_OF_HISTORY + 1: b"behind"}


def test_a_running_stream_takes_transactions_as_they_are_committed(kafka, client, table, topic):
    kafka.create_topic(topic)
    writer = kafka.transactions(topic)
    query = table.fill(client.stream(subscribe=topic, **COMMITTED), processingTime="0 seconds")
    for number in range(3):
        writer.abort(one(b"never"))
        writer.commit(one(b"%d" % number))
        query.processAllAvailable()
        assert [record.value for record in table.records()] == [b"%d" % n for n in range(number + 1)]
    query.stop()


def test_after_a_kill_a_stream_goes_on_with_the_same_answer(spark, table, broker_process, topic):
    broker = broker_process()
    kafka, client = Kafka(broker.address), SparkClient(spark, broker.address)
    kafka.create_topic(topic)
    committed = write_a_history(kafka, topic)
    table.fill_to_the_end(client.stream(subscribe=topic, **COMMITTED))
    late = kafka.transactions(topic)
    late.begin(one(b"open"))
    broker.kill9()
    broker.restart()
    late.end(commit=False)
    kafka.transactions(topic).commit(one(b"after"))
    table.fill_to_the_end(client.stream(subscribe=topic, **COMMITTED))
    # Behind the aborted record and its marker.
    after = {END_OF_HISTORY + 2: b"after"}
    assert by_offset(table.records()) == {**committed, **after}
    assert by_offset(read(client.batch(subscribe=topic, **COMMITTED))) == {**committed, **after}
