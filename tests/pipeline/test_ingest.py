"""Ingest from a real broker: what is in the warehouse is what clients did, once, whatever came in between."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import functions as f

from odradek.pipeline import ingest as ingest_module
from odradek.pipeline.errors import NoRecords, PipelineError, Unreachable
from odradek.pipeline.ingest import IngestOptions, ingest
from odradek.pipeline.schema import read_end_offsets, read_quarantine, read_raw
from tests.pipeline.conftest import TIMEOUT_S, Life, as_dicts


def coordinates(spark, warehouse):
    rows = read_raw(spark, warehouse).select("topic", "partition", "offset")
    return sorted((row.topic, row.partition, row.offset) for row in rows.collect())


def each_once(found):
    """Every offset from 0 on, but for those of markers, and none twice."""
    return len(found) == len(set(found)) > 0


def commits(spark, warehouse, group):
    rows = read_raw(spark, warehouse).where((f.col("kind") == "offset_commit") & (f.col("group") == group))
    return [row.committed_offset for row in rows.orderBy("partition", "offset").collect()]


def test_groups_offsets_and_transactions_are_in_the_warehouse(spark, life, options, warehouse):
    life.produce("orders", b"1", b"2", b"3")
    life.join_and_leave("shop", "orders")
    life.commit("by-hand", "orders", 2)
    life.transaction("bank", "orders", b"4", group_offset=3)
    done = ingest(spark, options)
    assert list(json.loads(Path(warehouse, "_cluster.json").read_text())) == ["cluster_id"]
    assert (done.quarantined, done.batches) == (0, 1)
    raw = read_raw(spark, warehouse)
    assert done.records == raw.count()
    generations = as_dicts(raw.where("kind = 'group_metadata' AND group = 'shop' AND size(members) = 1"))
    [member] = generations[0]["members"]
    assert member["client_id"] == "shop-client"
    assert member["assignment"] == [{"topic": "orders", "partitions": [0, 1]}]
    assert commits(spark, warehouse, "by-hand") == [2]
    assert commits(spark, warehouse, "bank") == [3]
    states = [row.status for row in raw.where("kind = 'transaction'").orderBy("offset").collect()]
    assert [state for state, before in zip(states, [None, *states], strict=False) if state != before] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "CompleteCommit",
    ]
    assert read_quarantine(spark, warehouse).count() == 0
    ends = {(row.topic, row.partition): row.end_offset for row in read_end_offsets(spark, warehouse).collect()}
    # Three records, one in a transaction, and its marker.
    assert ends == {("orders", 0): 5, ("orders", 1): 0}
    # No record names a topic by its id.
    assert not Path(warehouse, "topic_ids").exists()


def test_a_run_takes_what_is_new_and_nothing_twice_over_a_kill_of_the_broker(spark, life, options, warehouse):
    life.produce("orders", b"1")
    life.commit("g", "orders", 0)
    ingest(spark, options)
    life.broker.kill9()
    life.broker.start()
    life.commit("g", "orders", 1)
    ingest(spark, options)
    assert ingest(spark, options).records == 0
    assert commits(spark, warehouse, "g") == [0, 1]
    assert each_once(coordinates(spark, warehouse))


def test_a_run_cut_short_after_it_has_written_is_resumed_without_loss_or_duplicate(spark, life, options, warehouse, monkeypatch):
    life.produce("orders", b"1")
    life.commit("g", "orders", 1)
    with monkeypatch.context() as patch:

        def cut_short(_self):
            raise PipelineError("cut short")

        patch.setattr(ingest_module._Run, "sample_end_offsets", cut_short)
        with pytest.raises(PipelineError, match="cut short"):
            ingest(spark, options)
    assert commits(spark, warehouse, "g") == [1]
    life.commit("g", "orders", 0)
    ingest(spark, options)
    assert commits(spark, warehouse, "g") == [1, 0]
    assert each_once(coordinates(spark, warehouse))


def test_micro_batches_have_a_bound_and_together_every_record(spark, life, options, warehouse):
    life.produce("orders", b"1")
    for offset in range(12):
        life.commit("g", "orders", offset)
    done = ingest(spark, replace(options, max_records_per_batch=5))
    assert done.batches > 2
    assert commits(spark, warehouse, "g") == list(range(12))


def test_what_cannot_be_decoded_is_in_quarantine_with_its_bytes_and_the_rest_goes_on(
    spark, life, options, warehouse, monkeypatch
):
    """Nobody may write to the topics themselves, so another one stands in for them."""
    life.produce("lookalike", b"\0\1", b"\0\2")
    monkeypatch.setattr(ingest_module, "TOPICS", ("lookalike",))
    done = ingest(spark, options)
    assert (done.records, done.quarantined) == (2, 2)
    rows = read_quarantine(spark, warehouse).orderBy("offset").collect()
    assert [(row.topic, row.offset, row.reason, row.key, bytes(row.value)) for row in rows] == [
        ("lookalike", 0, "the record has no key", None, b"\0\1"),
        ("lookalike", 1, "the record has no key", None, b"\0\2"),
    ]
    assert read_raw(spark, warehouse).count() == 0


def test_records_that_were_deleted_are_missed_except_those_of_the_share_coordinator(spark, life, options, warehouse, monkeypatch):
    """Another topic stands in for either."""
    monkeypatch.setattr(ingest_module, "TOPICS", ("lookalike",))
    life.produce("lookalike", b"1", b"2")
    ingest(spark, options)
    life.produce("lookalike", b"3", b"4", b"5")
    before = TopicPartition("lookalike", 0, 4)
    # The client has to outlive its futures.
    admin = AdminClient({"bootstrap.servers": life.broker.address})
    [deleted] = admin.delete_records([before]).values()
    deleted.result(TIMEOUT_S)
    with monkeypatch.context() as patch:
        patch.setattr(ingest_module, "_KEPT", ("lookalike",))
        with pytest.raises(PipelineError, match=r"the topics lost records .*truncated.*: start with a new --warehouse"):
            ingest(spark, options)
    assert ingest(spark, options).records == 1
    assert sorted(row.offset for row in read_quarantine(spark, warehouse).collect()) == [0, 1, 4]


def test_another_clusters_warehouse_is_refused(spark, life, options, warehouse, broker_process):
    life.produce("orders", b"1")
    life.commit("g", "orders", 1)
    ingest(spark, options)
    other = Life(broker_process())
    other.produce("orders", b"1")
    other.commit("g", "orders", 1)
    with pytest.raises(PipelineError, match=r"belong to cluster .*: use a separate --warehouse for each cluster"):
        ingest(spark, replace(options, bootstrap_servers=other.broker.address))


def test_records_without_a_checkpoint_are_refused(spark, life, options, warehouse, tmp_path):
    life.produce("orders", b"1")
    life.commit("g", "orders", 1)
    ingest(spark, options)
    (tmp_path / "warehouse" / "checkpoints").rename(tmp_path / "elsewhere")
    with pytest.raises(
        PipelineError, match=r"has records, but its checkpoint checkpoints/ingest is missing: restore that directory"
    ):
        ingest(spark, options)


def test_a_warehouse_that_cannot_be_written_to_is_refused(spark, life, options, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PipelineError, match=r"cannot write to the warehouse .*/file/below: .*another --warehouse"):
        ingest(spark, replace(options, warehouse=str(tmp_path / "file" / "below")))


def test_a_cluster_without_either_topic_is_told(spark, life, options):
    with pytest.raises(
        NoRecords, match="has no topic __consumer_offsets or __transaction_state or __share_group_state: brokers create them"
    ):
        ingest(spark, options)


@pytest.mark.parametrize("servers", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"])
def test_where_nobody_listens_that_is_told(spark, warehouse, servers):
    with pytest.raises(Unreachable, match=r"no broker answers at 127\.0\.0\.1:1: Connection refused.*correct --bootstrap-server"):
        ingest(spark, IngestOptions(servers, warehouse))
