"""Spark's batch source: everything there is, or what lies between two bounds."""

import json
import threading

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.functions import spark_partition_id

from tests.spark.kafka import Record, values
from tests.spark.spark_client import offsets, read

NOON_MS = 1_750_000_000_000
LATEST, EARLIEST = -1, -2


def spaced_by_a_second(count: int, partition: int = 0) -> list[Record]:
    return [Record(b"%06d" % n, partition=partition, timestamp_ms=NOON_MS + 1000 * n) for n in range(count)]


def test_a_batch_has_every_record_with_its_partition_offset_and_timestamp(kafka, client, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [*spaced_by_a_second(20, partition=0), *spaced_by_a_second(10, partition=1)]
    kafka.send(topic, sent)
    found = read(client.batch(subscribe=topic))
    assert found == sent
    assert offsets(found, 0) == list(range(20))
    assert offsets(found, 1) == list(range(10))
    assert [record.timestamp_ms for record in found] == [record.timestamp_ms for record in sent]


def test_an_empty_topic_is_an_empty_batch(kafka, client, topic):
    kafka.create_topic(topic)
    assert read(client.batch(subscribe=topic)) == []


def test_a_null_is_not_an_empty_key_or_value(kafka, client, topic):
    kafka.create_topic(topic)
    sent = [Record(None, b"key"), Record(b"value", None), Record(None, None), Record(b"", b"")]
    kafka.send(topic, sent)
    assert read(client.batch(subscribe=topic)) == sent


def test_headers_come_in_order_with_repeated_names_and_null_values(kafka, client, topic):
    kafka.create_topic(topic)
    sent = [Record(b"v", headers=(("a", b"1"), ("b", None), ("a", b""), ("a", b"\x00\xff"))), Record(b"w")]
    kafka.send(topic, sent)
    assert read(client.batch(subscribe=topic, includeHeaders=True)) == sent


def test_offsets_bound_a_batch_the_first_inclusive_the_last_exclusive(kafka, client, topic):
    kafka.create_topic(topic, partitions=3)
    for partition in range(3):
        kafka.send(topic, values(10, partition=partition))
    found = read(
        client.batch(
            subscribe=topic,
            startingOffsets=json.dumps({topic: {"0": 3, "1": EARLIEST, "2": 9}}),
            endingOffsets=json.dumps({topic: {"0": 7, "1": 2, "2": LATEST}}),
        )
    )
    assert [offsets(found, partition) for partition in range(3)] == [[3, 4, 5, 6], [0, 1], [9]]


def test_timestamps_bound_a_batch_the_first_inclusive_the_last_exclusive(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, spaced_by_a_second(10))
    found = read(client.batch(subscribe=topic, startingTimestamp=NOON_MS + 3000, endingTimestamp=NOON_MS + 6000))
    assert offsets(found) == [3, 4, 5]


def test_a_timestamp_between_two_records_is_the_later_ones(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, spaced_by_a_second(10))
    assert offsets(read(client.batch(subscribe=topic, startingTimestamp=NOON_MS + 7001))) == [8, 9]


def test_timestamps_bound_each_partition_by_its_own(kafka, client, topic):
    kafka.create_topic(topic, partitions=2)
    kafka.send(topic, [*spaced_by_a_second(10, partition=0), *spaced_by_a_second(10, partition=1)])
    found = read(
        client.batch(
            subscribe=topic,
            startingOffsetsByTimestamp=json.dumps({topic: {"0": NOON_MS + 8000, "1": NOON_MS + 1000}}),
            endingOffsetsByTimestamp=json.dumps({topic: {"0": NOON_MS + 3_600_000, "1": NOON_MS + 3000}}),
        )
    )
    assert [offsets(found, partition) for partition in range(2)] == [[8, 9], [1, 2]]


def test_a_start_later_than_every_record_is_an_error_or_the_end_as_the_strategy_says(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, spaced_by_a_second(3))
    late = {"subscribe": topic, "startingTimestamp": NOON_MS + 3_600_000}
    with pytest.raises(PySparkException, match="No offset matched from request"):
        read(client.batch(**late, startingOffsetsByTimestampStrategy="error"))
    assert read(client.batch(**late, startingOffsetsByTimestampStrategy="latest")) == []


def test_several_topics_are_read_in_one_batch(kafka, client, topic):
    names = [kafka.create_topic(topic + suffix) for suffix in ("a", "b")]
    for number, name in enumerate(names):
        kafka.send(name, values(3, start=10 * number))
    assert read(client.batch(subscribe=",".join(names))) == [*values(3), *values(3, start=10)]


def test_a_pattern_takes_the_topics_it_matches_and_no_other(kafka, client, topic):
    for number, suffix in enumerate(("a1", "a2", "b")):
        kafka.send(kafka.create_topic(topic + suffix), values(2, start=10 * number))
    assert read(client.batch(subscribePattern=f"{topic}a.*")) == [*values(2), *values(2, start=10)]


def test_an_assignment_reads_the_partitions_it_names(kafka, client, topic):
    kafka.create_topic(topic, partitions=3)
    for partition in range(3):
        kafka.send(topic, values(4, partition=partition))
    assert read(client.batch(assign=json.dumps({topic: [0, 2]}))) == [*values(4, partition=0), *values(4, partition=2)]


def test_a_topic_that_is_not_there_is_an_error(client, topic):
    with pytest.raises(Py4JJavaError, match="UnknownTopicOrPartition"):
        read(client.batch(subscribe=topic))


def test_batches_of_every_codec_lie_in_one_log_and_are_read(kafka, client, topic):
    kafka.create_topic(topic)
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for number, codec in enumerate(codecs):
        kafka.send(topic, values(50, start=50 * number), codec)
    assert read(client.batch(subscribe=topic)) == values(250)


def test_more_tasks_than_partitions_read_every_record_once(kafka, client, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [*values(100, partition=0), *values(100, partition=1)]
    kafka.send(topic, sent)
    frame = client.batch(subscribe=topic, minPartitions=6)
    assert read(frame) == sent
    assert frame.select(spark_partition_id()).distinct().count() == 6


def test_megabyte_records_in_many_segments_are_read_whole(kafka, client, topic):
    kafka.create_topic(topic, segment_bytes="1048576")
    sent = [Record(bytes([number]) * 1_000_000) for number in range(5)]
    kafka.send(topic, sent)
    assert read(client.batch(subscribe=topic)) == sent


def test_a_consumer_of_committed_records_reads_what_no_transaction_holds_back(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(10))
    assert read(client.batch(subscribe=topic, **{"kafka.isolation.level": "read_committed"})) == values(10)


def test_a_group_id_of_ones_own_needs_no_group(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(10))
    assert read(client.batch(subscribe=topic, **{"kafka.group.id": "reports"})) == values(10)


def test_a_batch_read_while_records_arrive_has_no_gap(kafka, client, topic):
    kafka.create_topic(topic)
    kafka.send(topic, values(100))
    enough, arrival, ends = threading.Event(), threading.Condition(), [100]

    def go_on_writing() -> None:
        while not enough.is_set():
            kafka.send(topic, values(20, start=ends[-1]))
            with arrival:
                ends.append(ends[-1] + 20)
                arrival.notify()

    writer = threading.Thread(target=go_on_writing)
    writer.start()
    try:
        first = read(client.batch(subscribe=topic))
        with arrival:
            assert arrival.wait_for(lambda: ends[-1] > len(first), timeout=20)
        second = read(client.batch(subscribe=topic))
    finally:
        enough.set()
        writer.join()
    assert 100 <= len(first) < len(second)
    assert second == values(len(second))
    assert first == second[: len(first)]
    assert offsets(second) == list(range(len(second)))
