"""The tables of what real clients did at a real broker, all by ``odradek pipeline run``."""

from confluent_kafka import Consumer

from odradek.pipeline.tables import read_table
from odradek.pipeline.tables.schema import TABLES
from tests.pipeline.conftest import Life
from tests.pipeline.tables_story import Tables


class _Member:
    """A consumer of a group, polled until it has what it is to have."""

    def __init__(self, life: Life, name: str, *, topic: str = "orders", **settings: str) -> None:
        own = {"bootstrap.servers": life.broker.address, "log_level": 0, "group.id": "shop", "client.id": name}
        self.consumer = Consumer({**own, "auto.offset.reset": "earliest", "enable.auto.commit": False, **settings})
        self.consumer.subscribe([topic])

    def has(self, count: int) -> bool:
        self.consumer.poll(0.05)
        return len(self.consumer.assignment()) == count


def _until(*conditions) -> None:
    """Poll all of them until each is true at once."""
    while {condition() for condition in conditions} != {True}:
        pass


def test_run_makes_tables_of_what_groups_and_transactions_did(spark, life: Life, warehouse, command):
    life.produce("orders", b"1", b"2", b"3")
    first = _Member(life, "one", **{"group.instance.id": "i-1"})
    _until(lambda: first.has(2))
    second = _Member(life, "two")
    _until(lambda: first.has(1), lambda: second.has(1))
    life.produce("parcels", b"1")
    newer = {"topic": "parcels", "group.id": "newer", "group.protocol": "consumer"}
    third = _Member(life, "three", **newer)
    _until(lambda: third.has(2))
    fourth = _Member(life, "four", **newer)
    _until(lambda: third.has(1), lambda: fourth.has(1))
    life.commit("by-hand", "orders", 1)
    life.commit("by-hand", "orders", 3)
    life.transaction("bank", "orders", b"4", group_offset=2)
    life.transaction("bank", "orders", b"5", b"6")
    status, err = command("run", "--bootstrap-server", life.broker.address, "--warehouse", warehouse)
    assert status == 0
    assert [line.partition(":")[0] for line in err.splitlines() if line[0] != "s"][-1] == "findings"

    tables = Tables(spark, warehouse)
    generations = tables.column("group_generations", "shop", "reason", "member_count", "state")
    assert (generations[0], generations[-1]) == (("first", 1, "Stable"), ("members", 2, "Stable"))
    joined = [row for row in tables.rows("member_changes", "shop") if row["change"] == "joined"]
    assert [(row["client_id"], row["group_instance_id"]) for row in joined] == [("one", "i-1"), ("two", None)]
    moved = [row for row in tables.rows("partition_moves", "shop") if row["from_member"]]
    assert {(row["from_client_id"], row["to_client_id"], row["rebalance_kind"]) for row in moved} == {("one", "two", "eager")}
    assert tables.column("group_generations", "newer", "group_type", "reason", "member_count") == [
        ("Consumer", "first", 1),
        ("Consumer", "members", 2),
    ]
    assert tables.column("member_changes", "newer", "client_id", "change") == [("three", "joined"), ("four", "joined")]
    # The topic has an id alone in these records, and nobody has committed there.
    [moved] = [row for row in tables.rows("partition_moves", "newer") if row["from_member"]]
    assert (moved["topic"], moved["from_client_id"], moved["to_client_id"]) == ("parcels", "three", "four")
    assert moved["kept_ms"] >= 0
    [now] = tables.rows("groups_now", "newer")
    assert (now["state"], [each["topics"] for each in now["members"]]) == ("Stable", [["parcels"], ["parcels"]])
    assert {row["end_offset"] for row in tables.rows("end_offsets", "parcels")} == {0, 1}
    assert tables.column("offset_commits", "by-hand", "kind", "committed_offset") == [("first", 1), ("progress", 3)]
    # In a transaction, and there with it.
    assert tables.column("offsets_now", "bank", "committed_offset") == [2]
    assert sorted(tables.column("lag", "by-hand", "partition", "committed_offset")) == [(0, 3)]
    ended = tables.column("transactions", "bank", "outcome", "partition_count")
    assert ended == [("committed", 2), ("committed", 1)]
    [state] = tables.rows("transactional_ids_now", "bank")
    assert (state["status"], state["producer_epoch"] >= 0) == ("CompleteCommit", True)
    for member in (first, second, third, fourth):
        member.consumer.close()


def test_tables_says_that_there_is_nothing_to_make_them_of(spark, command, warehouse):
    status, err = command("tables", "--warehouse", warehouse)
    assert status == 2
    makes_it = "run odradek pipeline ingest first, or correct --warehouse"
    assert err.splitlines()[-1] == f"odradek: there is no warehouse at {warehouse}: {makes_it}"


def test_tables_ends_well_where_nothing_is_new(spark, command, story_warehouse):
    status, err = command("tables", "--warehouse", story_warehouse)
    assert (status, err.splitlines()[-1]) == (0, "tables: 0 records, 0 samples of partitions' ends")
    assert all(read_table(spark, story_warehouse, name).schema == schema for name, schema in TABLES.items())
