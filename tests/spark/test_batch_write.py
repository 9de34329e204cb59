"""Spark's batch sink, an idempotent Java producer: what it writes is what a plain client and Spark read."""

import pytest
from py4j.protocol import Py4JJavaError

from odradek.protocol import compression
from tests.spark.kafka import Record, batches_on_disk, values
from tests.spark.spark_client import read

CODECS = {"gzip": compression.GZIP, "snappy": compression.SNAPPY, "lz4": compression.LZ4, "zstd": compression.ZSTD}


def test_a_plain_client_reads_keys_values_headers_and_partitions_as_written(kafka, client, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [
        Record(b"one", b"k1", 0, headers=(("trace", b"\x01\x02"), ("empty", None))),
        Record(b"two", b"k2", 0),
        Record(b"three", b"k3", 1, headers=(("trace", b""),)),
    ]
    client.write(client.to_send(*sent).coalesce(1), topic=topic, includeHeaders=True)
    assert kafka.records(topic) == sent


def test_spark_reads_what_spark_wrote(kafka, client, topic):
    kafka.create_topic(topic, partitions=2)
    sent = [Record(b"v%d" % n, b"k%d" % n, n % 2, headers=(("n", b"%d" % n),)) for n in range(40)]
    client.write(client.to_send(*sent).coalesce(1), topic=topic, includeHeaders=True)
    assert read(client.batch(subscribe=topic, includeHeaders=True)) == [*sent[0::2], *sent[1::2]]


def test_each_row_goes_to_the_topic_its_column_names(kafka, client, topic):
    names = [kafka.create_topic(topic + suffix) for suffix in ("a", "b")]
    rows = [client.to_send(*values(3, start=10 * number), topic=name) for number, name in enumerate(names)]
    client.write(rows[0].union(rows[1]).coalesce(1))
    assert [kafka.records(name) for name in names] == [values(3), values(3, start=10)]


def test_a_null_key_or_value_is_written_as_null(kafka, client, topic):
    kafka.create_topic(topic)
    sent = [Record(None, b"key"), Record(b"value", None), Record(None, None), Record(b"", b"")]
    client.write(client.to_send(*sent).coalesce(1), topic=topic)
    assert kafka.records(topic) == sent


def test_a_topic_that_is_not_there_is_created_by_the_write(kafka, client, topic):
    client.write(client.to_send(*values(5)).coalesce(1), topic=topic)
    assert kafka.records(topic) == values(5)


@pytest.mark.parametrize("codec", CODECS)
def test_what_was_compressed_lies_so_on_disk_and_is_read_back(broker, kafka, client, topic, codec):
    kafka.create_topic(topic)
    sent = [Record(b"%06d" % n + b"." * 200) for n in range(200)]
    client.write(client.to_send(*sent).coalesce(1), topic=topic, **{"kafka.compression.type": codec, "kafka.linger.ms": 50})
    assert {batch.compression for batch in batches_on_disk(broker.data_dir, topic)} == {CODECS[codec]}
    assert kafka.records(topic) == sent
    assert read(client.batch(subscribe=topic)) == sent


def test_the_sinks_batches_have_a_producer_id_and_unbroken_sequences(broker, kafka, client, topic):
    kafka.create_topic(topic)
    options = {"topic": topic, "kafka.batch.size": 200}
    client.write(client.to_send(*values(200)).coalesce(1), **options)
    batches = batches_on_disk(broker.data_dir, topic)
    assert len(batches) > 5
    assert len({batch.producer_id for batch in batches}) == 1
    assert all(batch.has_producer_id for batch in batches)
    first = batches[0].base_sequence
    assert [batch.base_sequence for batch in batches] == [first + batch.base_offset for batch in batches]


@pytest.mark.parametrize("acks", ["0", "1"])
def test_a_sink_that_asks_for_less_than_idempotence_is_served(kafka, client, topic, acks):
    kafka.create_topic(topic)
    options = {"kafka.acks": acks, "kafka.enable.idempotence": "false"}
    client.write(client.to_send(*values(50)).coalesce(1), topic=topic, **options)
    assert kafka.records(topic) == values(50)


def test_tasks_that_write_at_once_lose_nothing(kafka, client, topic):
    kafka.create_topic(topic, partitions=3)
    frame = client.session.range(0, 3000, numPartitions=4).selectExpr("encode(id, 'utf-8') AS value", "int(id % 3) AS partition")
    client.write(frame, topic=topic)
    found = kafka.records(topic)
    assert sorted(int(record.value) for record in found) == list(range(3000))
    assert {(int(record.value) % 3, record.partition) for record in found} == {(0, 0), (1, 1), (2, 2)}


def test_a_record_larger_than_the_topic_takes_fails_the_write(kafka, client, topic):
    kafka.create_topic(topic, max_message_bytes="1000")
    with pytest.raises(Py4JJavaError, match="RecordTooLarge"):
        client.write(client.to_send(Record(b"." * 2000)), topic=topic)
    assert kafka.records(topic) == []


def test_a_partition_that_the_topic_lacks_fails_the_write(kafka, client, topic):
    kafka.create_topic(topic)
    with pytest.raises(Py4JJavaError, match="not present in metadata"):
        client.write(client.to_send(Record(b"v", partition=7)), topic=topic, **{"kafka.max.block.ms": 1000})
