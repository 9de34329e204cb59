"""``group_generations``, ``groups_now`` and ``member_changes``."""

import pytest

from tests.pipeline.raw_by_hand import History, member
from tests.pipeline.tables_story import Tables, told


@told
def _a_life(history: History) -> None:
    history.generation("g-life", 0, 0)
    history.generation("g-life", 1, 1, member("a", 1, 0))
    history.generation("g-life", 2, 3, member("b", 1), member("a", 0))
    history.generation("g-life", 3, 4, member("a", 0), member("b", 1))
    history.generation("g-life", 4, 8)
    history.generation("g-life", 7, 9, member("c", 0, 1))


@told
def _a_second_life(history: History) -> None:
    history.generation("g-again", 1, 1, member("a", 0))
    history.generation("g-again", 2, 2)
    history.no_group("g-again", 3)
    history.generation("g-again", 1, 4, member("a", 0))
    history.generation("g-deleted", 1, 1, member("a", 0))
    history.generation("g-deleted", 2, 2)
    history.no_group("g-deleted", 3)


@told
def _not_of_consumers(history: History) -> None:
    worker = member("w") | {"topics": None, "assignment": None}
    history.generation("g-connect", 1, 1, worker, protocol_type="connect", protocol="sessioned")


@told
def _static_members(history: History) -> None:
    history.generation("g-static", 1, 1, member("s-1", 0, instance="s"), member("t-1", 1, instance="t"))
    # What a bounce writes where the assignment stays as it was.
    history.generation("g-static", 1, 2, member("s-2", 0, instance="s"), member("t-1", 1, instance="t"))
    history.generation("g-static", 2, 3, member("s-3", 0, instance="s"), member("t-1", 1, instance="t"))
    history.generation("g-static", 3, 30, member("s-3", 0, 1, instance="s"))


@told
def _one_that_comes_and_goes(history: History) -> None:
    history.generation("g-flaps", 1, 1, member("a", 0), member("f", 1))
    history.generation("g-flaps", 2, 2, member("a", 1), member("f", 0))
    history.generation("g-flaps", 3, 7, member("a", 0, 1))
    history.generation("g-flaps", 4, 8, member("a", 1, 0))
    history.generation("g-flaps", 5, 9, member("a", 0), member("f", 1))
    history.generation("g-flaps", 6, 10, member("f", 0, 1))


@told
def _who_is_gone(history: History) -> None:
    history.generation("g-left", 1, 0, member("at-once", 0), member("other", 9))
    history.generation("g-left", 2, 5, member("after-a-commit", 0), member("other", 9))
    history.commit("g-left", 1, 10, topic="orders")
    history.commit("g-left", 2, 100, topic="orders")
    history.generation("g-left", 3, 105, member("silent", 0), member("other", 9))
    history.commit("g-left", 3, 110, topic="orders")
    history.commit("g-left", 1, 160, partition=9, topic="orders")
    history.generation("g-left", 4, 170, member("mute", 0), member("other", 9))
    history.generation("g-left", 5, 300, member("other", 9))


@told
def _who_is_gone_soon_after_another_record(history: History) -> None:
    """A static member's bounce is a record of the group, and none that says that the others are alive."""
    history.generation("g-bounced", 1, 0, member("s-1", 0, instance="s"), member("lost", 1))
    history.generation("g-bounced", 1, 20, member("s-2", 0, instance="s"), member("lost", 1))
    history.generation("g-bounced", 2, 21, member("s-2", 0, 1, instance="s"))
    # An old record does not say when the join phase ended.
    history.generation("g-old", 1, 0, member("a", 0), member("b", 1), state_timestamp_ms=-1)
    history.generation("g-old", 2, 1, member("a", 0, 1))
    # A static member that is removed, sooner than it could expire.
    history.generation("g-removed", 1, 0, member("a", 0), member("s-1", 1, instance="s"))
    history.generation("g-removed", 2, 9.7, member("a", 0, 1))
    history.generation("g-late", 1, 0, member("a", 0), member("b", 1))
    history.generation("g-late", 2, 9.75, member("a", 0, 1))


def test_a_generation_has_its_members_and_what_each_was_assigned(tables: Tables):
    first, second, *_ = tables.rows("group_generations", "g-life")
    assert (first["generation"], first["protocol_type"], first["protocol"], first["leader"]) == (1, "consumer", "range", "a")
    assert (first["members"], first["member_count"], first["state"]) == (["a"], 1, "Stable")
    assert first["assignment"] == [{"member_id": "a", "topic": "orders", "partitions": [0, 1]}]
    assert (second["members"], second["leader"]) == (["a", "b"], "b")
    assert [each["member_id"] for each in second["assignment"]] == ["a", "b"]


def test_a_generation_has_a_reason_and_the_time_since_the_one_before(tables: Tables):
    columns = ("generation", "state", "reason", "since_last_ms", "sync_ms")
    assert tables.column("group_generations", "g-life", *columns) == [
        (1, "Stable", "first", None, 250),
        (2, "Stable", "members", 2000, 250),
        (3, "Stable", "assignment", 1000, 250),
        (4, "Empty", "empty", 4000, None),
        (7, "Stable", "members", 1000, 250),
    ]


def test_a_group_made_anew_after_its_deletion_has_a_first_generation_again(tables: Tables):
    columns = ("generation", "reason", "since_last_ms")
    expected = [(1, "first", None), (2, "empty", 1000), (1, "first", None)]
    assert tables.column("group_generations", "g-again", *columns) == expected


def test_the_groups_of_now_are_the_newest_records_of_those_not_deleted(tables: Tables):
    [row] = tables.rows("groups_now", "g-life")
    assert (row["generation"], row["state"], [each["member_id"] for each in row["members"]]) == (7, "Stable", ["c"])
    assert row["members"][0]["assignment"] == [{"topic": "orders", "partitions": [0, 1]}]
    assert tables.rows("groups_now", "g-deleted") == []


def test_an_assignment_that_is_not_of_consumers_is_not_known(tables: Tables):
    [row] = tables.rows("group_generations", "g-connect")
    assert (row["protocol_type"], row["members"], row["assignment"]) == ("connect", ["w"], None)
    assert tables.rows("partition_moves", "g-connect") == []


def test_a_static_members_bounce_in_a_generation_is_no_generation(tables: Tables):
    assert tables.column("group_generations", "g-static", "generation", "reason") == [
        (1, "first"),
        (2, "assignment"),
        (3, "members"),
    ]


def test_members_that_come_and_go_are_told_with_their_client(tables: Tables):
    columns = ("generation", "member_id", "change")
    assert sorted(tables.column("member_changes", "g-life", *columns)) == [
        (1, "a", "joined"),
        (2, "b", "joined"),
        (4, "a", "left"),
        (4, "b", "left"),
        (7, "c", "joined"),
    ]
    row = tables.rows("member_changes", "g-life")[0]
    assert (row["client_id"], row["client_host"], row["group_instance_id"]) == ("app", "/app.example", None)


def test_a_member_that_comes_back_has_joined_again(tables: Tables):
    columns = ("generation", "member_id", "change")
    assert sorted(tables.column("member_changes", "g-flaps", *columns)) == [
        (1, "a", "joined"),
        (1, "f", "joined"),
        (3, "f", "left"),
        (5, "f", "joined"),
        (6, "a", "left"),
    ]


def test_a_member_of_a_group_that_is_deleted_is_not_told_to_have_left(tables: Tables):
    columns = ("generation", "member_id", "change")
    assert tables.column("member_changes", "g-again", *columns) == [(1, "a", "joined"), (2, "a", "left"), (1, "a", "joined")]


def test_a_static_member_under_another_id_has_bounced_and_one_that_is_gone_has_expired(tables: Tables):
    columns = ("generation", "group_instance_id", "member_id", "change")
    assert sorted(tables.column("member_changes", "g-static", *columns)) == [
        (1, "s", "s-1", "joined"),
        (1, "s", "s-2", "bounced_static"),
        (1, "t", "t-1", "joined"),
        (2, "s", "s-3", "bounced_static"),
        (3, "t", "t-1", "expired"),
    ]


def _gone(tables: Tables, group: str) -> list[tuple]:
    columns = ("member_id", "change", "for_left", "for_expired")
    return [row for row in tables.column("member_changes", group, *columns) if row[1] not in {"joined", "bounced_static"}]


def test_a_member_that_is_gone_sooner_than_any_timeout_has_left_and_of_others_their_commits_speak(tables: Tables):
    assert _gone(tables, "g-left") == [
        ("at-once", "left", "it was gone 5250 ms after it had joined, before its shortest timeout, 10000 ms", None),
        ("after-a-commit", "gone", "it had committed 5000 ms before; its session timeout is 10000 ms", None),
        ("silent", "gone", None, "it had committed, and then not for 60000 ms; its session timeout is 10000 ms"),
        ("mute", "gone", None, None),
    ]


@pytest.mark.parametrize("group", ["g-bounced", "g-old", "g-late"])
def test_of_a_member_that_may_have_been_silent_for_its_timeout_nothing_is_stated(tables: Tables, group):
    assert [(change, left, expired) for _, change, left, expired in _gone(tables, group)] == [("gone", None, None)]


def test_a_static_member_has_expired_if_its_timeout_may_have_passed_and_else_was_made_to_leave(tables: Tables):
    expired = "a static member does not leave when it is closed; its shortest timeout is 10000 ms"
    assert _gone(tables, "g-static") == [("t-1", "expired", None, expired)]
    [(_, change, why, _)] = _gone(tables, "g-removed")
    assert (change, why) == ("left", "it was gone 9950 ms after it had joined, before its shortest timeout, 10000 ms")
