"""Consumer groups in the tables, beside classic ones. What their records tell is in ``test_consumer_story``."""

import pytest

from tests.pipeline.consumer_records import assigned, consumer, epoch, has, removed, target
from tests.pipeline.raw_by_hand import History, member
from tests.pipeline.tables_story import Tables, told

# Of one member of two that is gone: the seconds of its last commit and of its end, and what they speak for.
_NOT_OWN = "and the log does not have its session timeout"
_LEFT = f"it had committed 1000 ms before; Kafka's default heartbeat interval is 5000 ms, {_NOT_OWN}"
_EXPIRED = f"it had committed, and then not for 50000 ms; Kafka's default session timeout is 45000 ms, {_NOT_OWN}"
_GONE = {
    "c-left": (99, 100, _LEFT, None),
    "c-expired": (50, 100, None, _EXPIRED),
    "c-neither": (70, 100, None, None),
    "c-mute": (None, 100, None, None),
}


@told
def _a_move(history: History) -> None:
    """Over both of the cuts that passes are made at."""
    history.consumer("c-moves", 1, consumer("a", client="one"), epoch(1), target("a", 0, 1), assigned(1), has("a", 1, 0, 1))
    history.consumer("c-moves", 7, consumer("b", client="two"), epoch(2), target("a", 0), target("b", 1), assigned(2))
    history.consumer("c-moves", 7, has("b", 2, state=2), has("a", 1, 0, pending=(1,)))
    history.consumer("c-moves", 12, has("a", 2, 0))
    history.consumer("c-moves", 13, has("b", 2, 1))


@told
def _who_is_gone(history: History) -> None:
    for group, (committed, gone, *_) in _GONE.items():
        members = [consumer("a"), consumer("b"), epoch(1), target("a", 0), target("b", 1), assigned(1)]
        history.consumer(group, 1, *members, has("a", 1, 0), has("b", 1, 1))
        if committed is not None:
            history.commit(group, 5, committed, partition=1)
        history.consumer(group, gone, *removed("b"), epoch(2))


@told
def _from_classic_and_back(history: History) -> None:
    history.generation("c-changes", 6, 1, member("a", 0, 1))
    history.no_group("c-changes", 5)
    history.consumer("c-changes", 5, consumer("a"), epoch(6), target("a", 0, 1), assigned(6), has("a", 6, 0, 1))
    joined = [consumer("b"), epoch(7), target("a", 0), target("b", 1), assigned(7), has("a", 7, 0), has("b", 7, 1)]
    history.consumer("c-changes", 9, *joined)
    history.consumer("c-changes", 15, consumer("c"), epoch(8), assigned(8))
    # When the last one goes that speaks the new protocol.
    history.consumer("c-changes", 20, *removed("a"), *removed("b"), *removed("c"), epoch(None))
    history.generation("c-changes", 8, 20, member("a", 0), member("b", 1))
    history.generation("c-changes", 9, 60, member("a", 0, 1))


def test_generations_of_both_types_are_in_one_table(tables: Tables):
    columns = ("generation", "group_type", "reason", "state", "why")
    assert tables.column("group_generations", "c-moves", *columns) == [
        (1, "Consumer", "first", "Reconciling", "one (a) joined"),
        (2, "Consumer", "members", "Reconciling", "two (b) joined"),
    ]
    assert tables.column("group_generations", "g-life", "group_type", "why")[0] == ("Classic", None)


def test_a_move_that_passes_cut_through_says_how_long_the_partition_was_kept(tables: Tables):
    columns = ("generation", "partition", "from_client_id", "to_client_id", "kept_ms")
    assert tables.column("partition_moves", "c-moves", *columns)[2:] == [(2, 1, "one", "two", 5000)]
    assert set(tables.column("partition_moves", "m-eager", "kept_ms")) == {None}


@pytest.mark.parametrize("group", list(_GONE))
def test_what_the_commits_of_a_member_that_is_gone_speak_for_is_told(tables: Tables, group):
    *_, left, expired = _GONE[group]
    assert tables.column("member_changes", group, "change", "for_left", "for_expired")[2:] == [("gone", left, expired)]


def test_the_groups_of_now_are_of_both_types_with_what_members_have(tables: Tables):
    [row] = tables.rows("groups_now", "c-moves")
    assert (row["group_type"], row["state"], row["generation"], row["protocol_type"]) == ("Consumer", "Stable", 2, "consumer")
    assert [(each["member_id"], each["assignment"]) for each in row["members"]] == [
        ("a", [{"topic": "orders", "partitions": [0]}]),
        ("b", [{"topic": "orders", "partitions": [1]}]),
    ]
    [row] = tables.rows("groups_now", "g-life")
    assert row["group_type"] == "Classic"


def test_a_group_that_changes_its_type_goes_on(tables: Tables):
    assert tables.column("group_generations", "c-changes", "generation", "group_type") == [
        (6, "Classic"),
        (7, "Consumer"),
        (8, "Consumer"),
        # As the classic group has it; its epoch was the consumer group's.
        (8, "Classic"),
        (9, "Classic"),
    ]
    [row] = tables.rows("groups_now", "c-changes")
    assert (row["group_type"], row["generation"]) == ("Classic", 9)
    assert tables.column("member_changes", "c-changes", "generation", "member_id", "change") == [
        (6, "a", "joined"),
        (7, "b", "joined"),
        (8, "c", "joined"),
        (8, "c", "gone"),
        (9, "b", "gone"),
    ]
    moved = tables.column("partition_moves", "c-changes", "generation", "partition", "from_member", "to_member")
    assert moved == [(6, 0, None, "a"), (6, 1, None, "a"), (7, 1, "a", "b"), (9, 1, "b", "a")]
