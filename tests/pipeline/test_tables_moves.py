"""``partition_moves``: who lost a partition to whom."""

from tests.pipeline.raw_by_hand import History, member
from tests.pipeline.tables_story import Tables, told

_MOVE = ("generation", "partition", "from_member", "to_member", "rebalance_kind")


@told
def _eager(history: History) -> None:
    history.generation("m-eager", 1, 1, member("a", 0, 1, client="one"))
    history.generation("m-eager", 2, 2, member("a", 0, client="one"), member("b", 1, client="two"))
    history.generation("m-eager", 3, 3, member("a", 0, client="one"), member("b", 1, client="two"))
    history.generation("m-eager", 4, 4)
    history.generation("m-eager", 5, 5, member("b", 0, 1, client="two"))


@told
def _cooperative(history: History) -> None:
    history.generation("m-coop", 1, 1, member("a", 0, 1), protocol="cooperative-sticky")
    history.generation("m-coop", 2, 2, member("a", 0), member("b"), protocol="cooperative-sticky")
    history.generation("m-coop", 3, 3, member("a", 0), member("b", 1), protocol="cooperative-sticky")
    # An assignor that is not called so, and does the same.
    history.generation("m-own", 1, 1, member("a", 0), protocol="mine")
    history.generation("m-own", 2, 2, member("a"), member("b"), protocol="mine")
    history.generation("m-own", 3, 3, member("a"), member("b", 0), protocol="mine")


@told
def _static(history: History) -> None:
    history.generation("m-static", 1, 1, member("s-1", 0, instance="s"), member("t-1", 1, instance="t"))
    history.generation("m-static", 1, 2, member("s-2", 0, instance="s"), member("t-1", 1, instance="t"))
    history.generation("m-static", 2, 3, member("s-2", instance="s"), member("t-1", 0, 1, instance="t"))


@told
def _deleted(history: History) -> None:
    history.generation("m-deleted", 1, 1, member("a", 0))
    history.no_group("m-deleted", 2)
    history.generation("m-deleted", 1, 3, member("b", 0))


def test_a_move_is_told_once_with_who_had_the_partition_and_who_has_it(tables: Tables):
    assert sorted(tables.column("partition_moves", "m-eager", *_MOVE), key=repr) == [
        (1, 0, None, "a", "eager"),
        (1, 1, None, "a", "eager"),
        (2, 1, "a", "b", "eager"),
        (4, 0, "a", None, "eager"),
        (4, 1, "b", None, "eager"),
        (5, 0, None, "b", "eager"),
        (5, 1, None, "b", "eager"),
    ]
    [row] = [row for row in tables.rows("partition_moves", "m-eager") if row["generation"] == 2]
    assert (row["topic"], row["from_client_id"], row["to_client_id"]) == ("orders", "one", "two")


def test_a_cooperative_move_over_two_generations_is_one(tables: Tables):
    assert tables.column("partition_moves", "m-coop", *_MOVE)[2:] == [(3, 1, "a", "b", "cooperative")]


def test_an_assignor_that_gives_up_before_it_gives_on_is_cooperative_whatever_its_name(tables: Tables):
    assert tables.column("partition_moves", "m-own", *_MOVE)[1:] == [(3, 0, "a", "b", "cooperative")]


def test_a_static_member_under_another_id_keeps_its_partitions(tables: Tables):
    assert tables.column("partition_moves", "m-static", *_MOVE)[2:] == [(2, 0, "s-2", "t-1", "eager")]


def test_of_a_group_that_was_deleted_nobody_has_anything(tables: Tables):
    assert tables.column("partition_moves", "m-deleted", *_MOVE) == [(1, 0, None, "a", "eager"), (1, 0, None, "b", "eager")]
