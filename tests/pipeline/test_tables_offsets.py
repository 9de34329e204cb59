"""``offset_commits``, ``offsets_now`` and ``lag``."""

from tests.pipeline.raw_by_hand import History, at
from tests.pipeline.tables_story import Tables, told


@told
def _commits(history: History) -> None:
    history.commit("o-steps", 10, 1)
    history.commit("o-steps", 16, 3)
    history.commit("o-steps", 7, 3.5, partition=1)
    history.commit("o-steps", 16, 5)
    history.commit("o-steps", 12, 9)
    history.commit("o-steps", 13, 9)


@told
def _deletions(history: History) -> None:
    history.commit("o-deleted", 5, 1, topic="deleted")
    history.commit("o-deleted", None, 2, topic="deleted")
    history.sample(20, 2.5, topic="deleted")
    history.commit("o-deleted", 6, 3, topic="deleted")
    history.commit("o-deleted", 1, 3, topic="gone")
    history.commit("o-deleted", None, 4, topic="gone")


@told
def _samples(history: History) -> None:
    for group, offset in (("o-slow", 10), ("o-fast", 95)):
        history.commit(group, 0, 10, topic="sampled")
        history.commit(group, offset, 20, topic="sampled")
        history.commit(group, 100, 40, topic="sampled")
    history.sample(50, 5, topic="sampled")
    history.sample(60, 10, topic="sampled")
    history.sample(90, 30, topic="sampled")
    history.sample(101, 40, topic="sampled")
    history.sample(70, 30, partition=1, topic="sampled")


@told
def _a_clock_that_goes_back(history: History) -> None:
    for offset, seconds in ((1, 10), (2, 20), (3, 15), (4, 30)):
        history.commit("o-clock", offset, seconds, topic="clock")
    for seconds in (12, 17, 25, 35):
        history.sample(100, seconds, topic="clock")


def test_each_commit_is_told_against_the_one_before_of_its_partition(tables: Tables):
    columns = ("partition", "kind", "previous_offset", "committed_offset", "delta", "seconds_since", "rate_per_s")
    assert tables.column("offset_commits", "o-steps", *columns) == [
        (0, "first", None, 10, None, None, None),
        (0, "progress", 10, 16, 6, 2.0, 3.0),
        (1, "first", None, 7, None, None, None),
        (0, "repeat", 16, 16, 0, 2.0, 0.0),
        (0, "backward", 16, 12, -4, 4.0, -1.0),
        (0, "progress", 12, 13, 1, 0.0, None),
    ]


def test_a_commit_has_what_its_record_says(tables: Tables):
    row = tables.rows("offset_commits", "o-steps")[0]
    assert (row["topic"], row["at"].timestamp(), row["metadata"], row["leader_epoch"]) == ("orders", at(1).timestamp(), "m", 3)


def test_after_a_deletion_the_next_commit_is_a_first_one(tables: Tables):
    columns = ("topic", "kind", "previous_offset", "committed_offset", "seconds_since")
    assert tables.column("offset_commits", "o-deleted", *columns) == [
        ("deleted", "first", None, 5, None),
        ("deleted", "deleted", 5, None, 1.0),
        ("deleted", "first", None, 6, None),
        ("gone", "first", None, 1, None),
        ("gone", "deleted", 1, None, 1.0),
    ]


def test_the_offsets_of_now_are_the_newest_that_were_not_deleted(tables: Tables):
    columns = ("topic", "partition", "committed_offset", "leader_epoch", "metadata")
    assert tables.column("offsets_now", "o-deleted", *columns) == [("deleted", 0, 6, 3, "m")]
    assert sorted(tables.column("offsets_now", "o-steps", *columns)) == [("orders", 0, 13, 3, "m"), ("orders", 1, 7, 3, "m")]


def _lag(tables: Tables, group: str) -> list[tuple]:
    columns = ("sampled_at", "end_offset", "committed_offset", "lag")
    rows = sorted(tables.column("lag", group, *columns))
    return [(sampled_at.timestamp() - at(0).timestamp(), *rest) for sampled_at, *rest in rows]


def test_a_sample_is_held_against_what_each_group_had_committed_by_then(tables: Tables):
    assert _lag(tables, "o-slow") == [(10, 60, 0, 60), (30, 90, 10, 80), (40, 101, 100, 1)]
    # Committed was more than the sample saw: it was taken before.
    assert _lag(tables, "o-fast") == [(10, 60, 0, 60), (30, 90, 95, 0), (40, 101, 100, 1)]


def test_a_group_has_no_lag_while_it_has_nothing_committed(tables: Tables):
    assert _lag(tables, "o-deleted") == []


def test_where_a_brokers_clock_went_back_each_sample_has_one_lag(tables: Tables):
    assert [row[0] for row in _lag(tables, "o-clock")] == [12, 17, 25, 35]
