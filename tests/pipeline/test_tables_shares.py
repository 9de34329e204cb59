"""Share groups in the tables: their members, and their share partitions. What records tell is in ``test_share_story``."""

from datetime import datetime

from tests.pipeline.consumer_records import assigned, consumer, epoch, has, sharing, target
from tests.pipeline.raw_by_hand import History
from tests.pipeline.raw_by_hand import at as time_at
from tests.pipeline.share_records import ACKNOWLEDGED, ARCHIVED, AVAILABLE, deleted, snapshot, update
from tests.pipeline.tables_story import Tables, told


@told
def _two_partitions(history: History) -> None:
    """Over both of the cuts that passes are made at."""
    history.consumer("s-two", 1, *sharing(consumer("a"), epoch(1), target("a", 0, 1), assigned(1), has("a", 1, 0, 1)))
    history.share("s-two", 1, snapshot(partition=0), snapshot(partition=1, start=7))
    history.share("s-two", 5, update((0, 4, AVAILABLE, 1), partition=0), update((7, 9, ACKNOWLEDGED, 1), partition=1))
    history.share("s-two", 35, update((0, 0, AVAILABLE, 2), (1, 4, ACKNOWLEDGED, 2), partition=0))
    history.share("s-two", 36, update((20, 20, AVAILABLE, 1), partition=1, start=10))
    history.share("s-two", 410, update((0, 0, ARCHIVED, 3), partition=0))
    history.share("s-two", 411, update(partition=0, start=5, complete=0))


@told
def _of_others(history: History) -> None:
    history.share("s-gone", 2, snapshot(), update((0, 0, AVAILABLE, 1)))
    history.share("s-gone", 403, deleted())


def at(seconds: float) -> datetime:
    """A time as Spark hands it out."""
    return time_at(seconds).replace(tzinfo=None)


def test_deliveries_and_progress_are_told_of_each_share_partition(tables: Tables):
    names = ("partition", "first_offset", "last_offset", "records", "change", "delivery_count", "held_ms")
    assert tables.column("share_deliveries", "s-two", *names) == [
        (0, 0, 4, 5, "returned", 1, None),
        (1, 7, 9, 3, "accepted", 1, None),
        (0, 0, 0, 1, "returned", 2, 30_000),
        (0, 1, 4, 4, "accepted", 2, 30_000),
        (1, 20, 20, 1, "returned", 1, None),
        (0, 0, 0, 1, "archived", 3, 375_000),
    ]
    [*_, last] = tables.rows("share_deliveries", "s-two")
    assert (last["topic"], last["at"], last["first_returned_at"]) == ("orders", at(410), at(5))
    assert tables.column("share_progress", "s-two", "partition", "change", "start_offset", "delta") == [
        (0, "first", 0, None),
        (1, "first", 7, None),
        (1, "progress", 10, 3),
        (0, "progress", 5, 5),
    ]
    assert tables.column("share_progress", "s-gone", "change", "start_offset") == [("first", 0), ("deleted", None)]


def test_there_is_a_state_of_each_share_partition_now(tables: Tables):
    assert tables.rows("share_partitions_now", "s-gone") == []
    done, begun = sorted(tables.rows("share_partitions_now", "s-two"), key=lambda row: row["partition"])
    assert (done["start_offset"], done["delivery_complete_count"], done["batches"]) == (5, 0, [])
    [batch] = begun["batches"]
    assert (batch["state"], batch["delivery_count"], batch["since"], batch["first_returned_at"]) == (
        "Available",
        1,
        at(36),
        at(36),
    )


def test_a_share_group_is_among_the_groups(tables: Tables):
    names = ("generation", "group_type", "protocol_type", "state", "reason")
    assert tables.column("group_generations", "s-two", *names) == [(1, "Share", "share", "Stable", "first")]
    [row] = tables.rows("groups_now", "s-two")
    assert (row["group_type"], row["members"][0]["assignment"]) == ("Share", [{"topic": "orders", "partitions": [0, 1]}])
    assert tables.column("member_changes", "s-two", "member_id", "change") == [("a", "joined")]
