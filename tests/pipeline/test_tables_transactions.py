"""``transactions``, ``open_transactions`` and ``transactional_ids_now``."""

import pytest

from tests.pipeline.raw_by_hand import History, at
from tests.pipeline.tables_story import Tables, told


@told
def _two_in_turn(history: History) -> None:
    history.transaction("t-two", "Empty", 0)
    history.transaction("t-two", "Ongoing", 1, 0, start=1)
    history.transaction("t-two", "Ongoing", 2, 0, 1, start=1)
    history.transaction("t-two", "PrepareCommit", 4, 0, 1, start=1)
    history.transaction("t-two", "CompleteCommit", 4.5, start=1)
    history.transaction("t-two", "Ongoing", 6, 2, start=6)
    history.transaction("t-two", "PrepareAbort", 7, 2, start=6)
    history.transaction("t-two", "CompleteAbort", 8, start=6)


def _ends(history: History, name: str, status: str, seconds: float, *, epoch: int, version: int = 0) -> None:
    history.transaction(name, "Ongoing", 10, 0, start=10, epoch=5, version=version, timeout_ms=60_000)
    # The coordinator is of the newer kind, whatever the client is.
    by_client = 0 if epoch == 5 else 2
    for state, delay in ((f"Prepare{status}", 0), (f"Complete{status}", 1)):
        partitions = () if delay else (0,)
        history.transaction(name, state, seconds + delay, *partitions, start=10, epoch=epoch, version=max(version, by_client))


@told
def _endings(history: History) -> None:
    _ends(history, "t-old-commit", "Commit", 20, epoch=5)
    _ends(history, "t-old-abort", "Abort", 20, epoch=5)
    _ends(history, "t-old-late-abort", "Abort", 90, epoch=5)
    _ends(history, "t-old-fenced", "Abort", 20, epoch=6)
    _ends(history, "t-old-timed-out", "Abort", 71, epoch=6)
    _ends(history, "t-new-commit", "Commit", 20, epoch=6, version=2)
    _ends(history, "t-new-abort", "Abort", 20, epoch=6, version=2)
    _ends(history, "t-new-fenced", "Abort", 20, epoch=7, version=2)
    _ends(history, "t-new-timed-out", "Abort", 71, epoch=6, version=2)
    _ends(history, "t-new-late-commit", "Commit", 90, epoch=6, version=2)


@told
def _open(history: History) -> None:
    history.transaction("t-open", "CompleteCommit", 1, start=0)
    history.transaction("t-open", "Ongoing", 3, 2, 1, start=3, epoch=1)
    history.transaction("t-open", "Ongoing", 4, 0, 2, 1, start=3, epoch=1)
    history.transaction("t-deciding", "Ongoing", 1, 0, start=1)
    history.transaction("t-deciding", "PrepareAbort", 2, 0, start=1)
    history.transaction("t-forgotten", "CompleteCommit", 1, start=0)
    history.transaction("t-forgotten", None, 2)


def test_each_transaction_is_a_row_with_the_times_of_its_states(tables: Tables):
    times = ("start_at", "ongoing_at", "prepared_at", "completed_at")
    rows = tables.column("transactions", "t-two", *times)
    seconds = [[time.timestamp() - at(0).timestamp() for time in row] for row in rows]
    assert seconds == [[1, 1, 4, 4.5], [6, 6, 7, 8]]
    columns = ("outcome", "ongoing_ms", "prepare_ms", "total_ms", "timeout_ms")
    assert tables.column("transactions", "t-two", *columns) == [
        ("committed", 3000, 500, 3500, 60_000),
        ("aborted", 1000, 1000, 2000, 60_000),
    ]


def test_a_transaction_has_all_the_partitions_that_were_added_to_it(tables: Tables):
    rows = tables.column("transactions", "t-two", "partitions", "partition_count")
    assert [([each["partition"] for each in partitions], count) for partitions, count in rows] == [([0, 1], 2), ([2], 1)]


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        ("old-commit", "committed"),
        ("old-abort", "aborted"),
        ("old-late-abort", "aborted"),
        ("old-fenced", "fenced"),
        ("old-timed-out", "timed_out"),
        ("new-commit", "committed"),
        ("new-abort", "aborted"),
        ("new-fenced", "fenced"),
        ("new-timed-out", "timed_out"),
        ("new-late-commit", "committed"),
    ],
)
def test_who_ended_a_transaction_is_told_from_its_epochs_and_its_timeout(tables: Tables, ending, outcome):
    columns = ("outcome", "producer_id", "producer_epoch")
    assert tables.column("transactions", f"t-{ending}", *columns) == [(outcome, 7, 5)]


def test_what_was_compacted_away_of_a_transaction_is_not_known(tables: Tables):
    columns = ("outcome", "ongoing_at", "prepared_at", "ongoing_ms", "prepare_ms", "total_ms", "partition_count")
    assert tables.column("transactions", "t-open", *columns) == [("committed", None, None, None, None, 1000, 0)]


def test_open_transactions_are_those_that_are_not_over(tables: Tables):
    [row] = tables.rows("open_transactions", "t-open")
    assert (row["status"], row["producer_epoch"], len(row["partitions"])) == ("Ongoing", 1, 3)
    assert (row["start_at"].timestamp(), row["last_update_at"].timestamp()) == (at(3).timestamp(), at(4).timestamp())
    assert tables.column("open_transactions", "t-deciding", "status") == ["PrepareAbort"]
    assert tables.rows("open_transactions", "t-two") == []


def test_the_transactional_ids_of_now_are_those_not_forgotten_in_their_newest_state(tables: Tables):
    assert tables.column("transactional_ids_now", "t-two", "status", "partitions") == [("CompleteAbort", [])]
    assert tables.column("transactional_ids_now", "t-deciding", "status") == ["PrepareAbort"]
    assert tables.rows("transactional_ids_now", "t-forgotten") == []
