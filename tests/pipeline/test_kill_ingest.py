"""Ingest under kill -9, its own and the broker's: what is in the warehouse afterwards is every record, once."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import functions as f

from odradek.pipeline import ingest as ingest_module
from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.schema import read_raw
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.pipeline_kills.runs import SETTINGS, JobProcess, load

RECORDS = 6_000
BATCH_RECORDS = 1_500


@pytest.fixture
def history(broker_process):
    """A broker with a synthetic history."""
    broker = broker_process(settings=SETTINGS)
    load(broker.address, RECORDS)
    return broker


def assert_every_record_once(spark, warehouse):
    raw = read_raw(spark, warehouse)
    partitions = raw.groupBy("topic", "partition").agg(
        f.count(f.lit(1)).alias("rows"), f.count_distinct("offset").alias("offsets"), f.max("offset").alias("last")
    )
    found = partitions.collect()
    assert sum(row.rows for row in found) == RECORDS
    assert all(row.rows == row.offsets == row.last + 1 for row in found)


def test_a_job_killed_in_the_middle_goes_on_where_it_was(spark, history, warehouse):
    commits = Path(warehouse, "checkpoints", "ingest", "commits")
    with JobProcess(history.address, warehouse, BATCH_RECORDS, jobs="ingest") as job:
        job.wait(0)
        # The first micro-batch is done, the second under way.
        until((commits / "0").exists)
        job.kill9()
    assert not (commits / "3").exists()
    ingest(spark, IngestOptions(history.address, warehouse, max_records_per_batch=BATCH_RECORDS))
    assert_every_record_once(spark, warehouse)


def test_a_broker_killed_under_the_job_is_waited_for(spark, history, warehouse, monkeypatch):
    decode = ingest_module.decode
    back = threading.Timer(0.5, history.start)
    killed = []

    def kill_first(records):
        if not killed:
            killed.append(history.kill9())
            back.start()
        return decode(records)

    monkeypatch.setattr(ingest_module, "decode", kill_first)
    options = IngestOptions(history.address, warehouse)
    done = ingest(spark, replace(options, max_records_per_batch=BATCH_RECORDS))
    back.join()
    assert killed
    assert done.records == RECORDS
    assert_every_record_once(spark, warehouse)
