"""The moves of a streams group's tasks, out of its records, whatever passes they are read in."""

from odradek.pipeline.tables.stories import Record
from odradek.pipeline.tables.streams_story import StreamsGroupStory
from tests.pipeline.streams_records import runs, runs_nothing, streams_epoch, streams_member, targets, topology

BEGUN = [streams_member("a", "p"), topology(**{"0": ["sums"], "sub_1": []}), streams_epoch(2), targets(2)]
ALL = runs("a", 2, {"0": [0, 1], "sub_1": [0]})
# ``b1`` of another process joins and keeps a standby; ``b2`` beside it gets the task when ``a`` and ``b1`` have given it up.
SHARED = [
    streams_member("b1", "q"),
    targets(3),
    runs("b1", 3, {}, standby={"0": [1]}),
    streams_member("b2", "q"),
    targets(4),
    runs("a", 3, {"0": [0], "sub_1": [0]}, pending={"0": [1]}),
    runs("a", 4, {"0": [0]}),
    runs("b1", 4, {}),
    runs("b2", 4, {"0": [1], "sub_1": [0]}),
]
# The process of both goes. Its standby is older than the target that gives ``a`` everything back.
ALONE = [runs_nothing("b1"), streams_member("b1", None), runs_nothing("b2"), streams_member("b2", None), targets(6)]
BACK = runs("a", 6, {"0": [0, 1], "sub_1": [0]})


def told(*records, cut=0):
    """The rows of these records, a second apart, and the tasks at the end. The story is resumed after ``cut`` of them."""
    story, rows = StreamsGroupStory("g"), []
    for offset, (kind, is_tombstone, fields) in enumerate(records):
        if offset and offset == cut:
            state = story.state()
            story = StreamsGroupStory("g") if state is None else StreamsGroupStory.resumed("g", state["_story"])
        rows += story.take(Record(kind, is_tombstone, fields, offset * 1_000_000, 0, offset))
    return rows, list(story.now()), story.state()


def moves(rows):
    assert {row.table for row in rows} <= {"task_moves"}
    names = ("subtopology", "partition", "from_process", "to_process", "is_stateful", "had_standby", "away_ms")
    return [tuple(row.columns[name] for name in names) for row in rows]


def tasks(rows):
    return [tuple(row.columns[name] for name in ("subtopology", "partition", "member_id", "standby")) for row in rows]


def test_a_task_moves_when_another_member_has_it():
    rows, now, _ = told(*BEGUN, ALL, *SHARED, *ALONE, BACK)
    assert moves(rows) == [
        ("0", 0, None, "p", True, False, None),
        ("0", 1, None, "p", True, False, None),
        ("sub_1", 0, None, "p", False, False, None),
        ("0", 1, "p", "q", True, True, 2000),
        ("sub_1", 0, "p", "q", False, False, 2000),
        ("0", 1, "q", "p", True, False, 3000),
        ("sub_1", 0, "q", "p", False, False, 3000),
    ]
    last = rows[-1].columns
    assert (last["from_member"], last["to_member"], last["generation"], last["to_client_id"]) == ("b2", "a", 6, "client of a")
    assert tasks(now) == [("0", 0, "a", []), ("0", 1, "a", []), ("sub_1", 0, "a", [])]


def test_standbys_and_tasks_that_no_member_has_are_among_the_tasks_now():
    _, now, _ = told(*BEGUN, ALL, *SHARED[:3])
    assert tasks(now) == [("0", 0, "a", []), ("0", 1, "a", ["b1"]), ("sub_1", 0, "a", [])]
    _, now, _ = told(*BEGUN, ALL, *SHARED[:3], runs_nothing("a"), streams_member("a", None))
    assert tasks(now) == [("0", 1, None, ["b1"])]


def test_processes_and_topologies_that_the_log_does_not_tell_are_unknown():
    rows, _, _ = told(runs("a", 2, {"0": [0]}))
    assert moves(rows) == [("0", 0, None, None, None, None, None)]


def test_the_rows_are_the_same_whatever_passes_the_records_are_read_in():
    records = (*BEGUN, ALL, *SHARED, *ALONE, BACK)
    for cut in range(1, len(records)):
        assert told(*records, cut=cut) == told(*records), cut


def test_a_deleted_group_is_forgotten():
    rows, now, state = told(*BEGUN, ALL, runs_nothing("a"), streams_member("a", None), streams_epoch(None))
    assert (len(rows), now, state) == (3, [], None)
