"""Where partitions ended before anybody looked: as the records' timestamps say, and nothing where they do not."""

import pytest

from odradek.pipeline import ingest as past_ends_module
from odradek.pipeline.cluster import Cluster
from odradek.pipeline.ingest import ingest, past_ends, times_between
from odradek.pipeline.schema import read_end_offsets
from tests.spark.kafka import Kafka, Record


@pytest.mark.parametrize(
    ("last_ms", "times"),
    [
        (1000, []),
        (5999, []),
        (6000, [6000]),
        (6001, [6000, 6001]),
        (20_000, [6000, 11_000, 16_000, 20_000]),
        (201_000, [11_000 + 10_000 * n for n in range(20)]),
    ],
)
def test_times_are_spread_evenly_and_neither_many_nor_close(last_ms, times):
    assert list(times_between(1000, last_ms)) == times


@pytest.fixture
def ends(spark, broker):
    """``ends(topics, first_ms, last_ms)``, sorted."""

    def ask(topics, first_ms, last_ms):
        with Cluster(spark, broker.address, {}) as cluster:
            return sorted(past_ends(cluster, topics, first_ms, last_ms))

    return ask


def test_an_end_is_where_the_first_record_not_older_lies(ends, broker, new_name):
    topic = Kafka(broker.address).create_topic(new_name(), partitions=2)
    Kafka(broker.address).send(topic, [Record(b"", timestamp_ms=time_ms) for time_ms in (4000, 8000, 9000, 14_000)])
    assert ends([topic], 1000, 20_000) == [(topic, 0, 1, 6000), (topic, 0, 3, 11_000)]
    assert ends([topic], 1000, 3000) == []


def test_of_a_time_whose_records_are_gone_nothing_is_said(ends, broker, new_name):
    kafka = Kafka(broker.address)
    topic = kafka.create_topic(new_name())
    kafka.send(topic, [Record(b"", timestamp_ms=time_ms) for time_ms in (4000, 8000, 9000, 14_000)])
    kafka.delete_records(topic, before_offset=2)
    assert ends([topic], 1000, 20_000) == [(topic, 0, 3, 11_000)]


def test_ingest_samples_the_time_that_its_records_are_of(spark, life, options, warehouse, monkeypatch):
    monkeypatch.setattr(past_ends_module, "_SHORTEST_STEP_MS", 1)
    for offset in range(10):
        life.produce("orders", b"1")
        life.commit("g", "orders", offset)
    ingest(spark, options)
    samples = read_end_offsets(spark, warehouse).where("partition = 0").orderBy("sampled_at").collect()
    ends = [row.end_offset for row in samples]
    assert ends == sorted(ends)
    assert (ends[-1], len(set(ends)) > 3) == (10, True)
