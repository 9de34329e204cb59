"""Streams groups in the tables: the moves of their tasks. The meaning of the records is tested in ``test_streams_story``."""

from tests.pipeline.raw_by_hand import History
from tests.pipeline.streams_records import runs, streams_epoch, streams_member, topology
from tests.pipeline.tables_story import Tables, told


@told
def _two_members(history: History) -> None:
    """Over both of the cuts that passes are made at."""
    begun = (streams_member("a", "p"), topology(**{"0": ["sums"]}), streams_epoch(2), runs("a", 2, {"0": [0, 1]}))
    history.consumer("st-two", 1, *begun)
    history.consumer("st-two", 30, streams_member("b", "q"), runs("a", 3, {"0": [0]}))
    history.consumer("st-two", 410, runs("b", 3, {"0": [1]}, standby={"0": [0]}))


def test_moves_of_tasks_and_the_tasks_now(tables: Tables):
    names = ("subtopology", "partition", "from_member", "to_member", "to_process", "is_stateful", "had_standby", "away_ms")
    assert tables.column("task_moves", "st-two", *names) == [
        ("0", 0, None, "a", "p", True, False, None),
        ("0", 1, None, "a", "p", True, False, None),
        ("0", 1, "a", "b", "q", True, False, 380_000),
    ]
    names = ("partition", "member_id", "process_id", "standby")
    assert sorted(tables.column("tasks_now", "st-two", *names)) == [(0, "a", "p", ["b"]), (1, "b", "q", [])]
