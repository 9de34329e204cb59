"""Rows out of the records of one share partition; its state is what the share coordinator itself makes of them."""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.share.batches import combined, updated
from odradek.pipeline.tables.share_story import SharePartitionStory
from odradek.pipeline.tables.stories import Record
from odradek.protocol.coordinator_records import ShareSnapshotValue, ShareUpdateValue
from odradek.protocol.coordinator_records.share_states import StateBatch
from tests.pipeline.consumer_records import NAMES, ORDERS_ID
from tests.pipeline.share_records import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE, deleted, snapshot, update

PLACE = ORDERS_ID, 0


def told(*steps, story=None):
    """The rows of (seconds, record) steps, each record at an offset of its own."""
    story = story or SharePartitionStory("g", PLACE, NAMES)
    offsets = count()
    return [row for seconds, record in steps for row in story.take(Record(*record, round(seconds * 1_000_000), 0, next(offsets)))]


def columns(rows, table, *names):
    return [tuple(row.columns[name] for name in names) for row in rows if row.table == table]


def deliveries(rows, *names):
    return columns(rows, "share_deliveries", "first_offset", "last_offset", "change", "delivery_count", *names)


def test_a_record_that_is_returned_until_it_is_archived():
    rows = told(
        (0, snapshot(start=10)),
        (40, update((10, 14, ACKNOWLEDGED, 1), (15, 15, AVAILABLE, 1), (16, 19, ACKNOWLEDGED, 1), start=10)),
        (41, update(start=15, complete=4)),
        (70, update((15, 15, AVAILABLE, 2))),
        (71, update((15, 15, ARCHIVING, 3))),
        (72, update((15, 15, ARCHIVED, 3))),
        (73, update(start=20)),
    )
    assert deliveries(rows, "previous_state", "held_ms", "first_returned_at") == [
        (10, 14, "accepted", 1, "Available", None, None),
        (15, 15, "returned", 1, "Available", None, 40_000_000),
        (16, 19, "accepted", 1, "Available", None, None),
        (15, 15, "returned", 2, "Available", 30_000, 40_000_000),
        (15, 15, "archiving", 3, "Available", 1_000, 40_000_000),
        (15, 15, "archived", 3, "Archiving", None, 40_000_000),
    ]
    assert columns(rows, "share_progress", "change", "start_offset", "delta", "delivery_complete_count") == [
        ("first", 10, None, None),
        ("progress", 15, 5, 4),
        ("progress", 20, 5, None),
    ]


def test_a_batch_that_is_released_in_part_is_told_in_parts():
    rows = told(
        (0, snapshot(start=0)),
        (1, update((0, 9, AVAILABLE, 1))),
        (3, update((2, 4, ACKNOWLEDGED, 2), (5, 6, AVAILABLE, 2))),
        (4, update((0, 9, ACKNOWLEDGED, 3))),
    )
    assert deliveries(rows, "previous_delivery_count", "held_ms") == [
        (0, 9, "returned", 1, 0, None),
        (2, 4, "accepted", 2, 1, 2_000),
        (5, 6, "returned", 2, 1, 2_000),
        (0, 1, "accepted", 3, 1, 3_000),
        (2, 4, "accepted", 3, 2, None),
        (5, 6, "accepted", 3, 2, 1_000),
        (7, 9, "accepted", 3, 1, 3_000),
    ]


def test_a_delivery_that_does_not_count_and_a_snapshot_that_repeats_tell_nothing():
    story = SharePartitionStory("g", PLACE, NAMES)
    told((0, snapshot(start=0)), (1, update((0, 4, AVAILABLE, 1))), story=story)
    assert told((2, update((0, 4, AVAILABLE, 1))), (3, snapshot((0, 4, AVAILABLE, 1), (5, 9, AVAILABLE, 0))), story=story) == []
    # A snapshot that a write caused.
    rows = told((4, snapshot((0, 4, AVAILABLE, 1), (5, 5, ARCHIVED, 1), start=0, leader_epoch=3)), story=story)
    assert deliveries(rows, "held_ms") == [(5, 5, "archived", 1, None)]
    assert columns(rows, "share_progress", "change", "leader_epoch") == [("leader", 3)]


def test_what_was_there_when_the_log_begins_has_no_time():
    story = SharePartitionStory("g", PLACE, {})
    assert deliveries(told((5, snapshot((3, 5, AVAILABLE, 2), start=3)), story=story)) == []
    [row] = told((6, update((3, 5, AVAILABLE, 3))), story=story)
    assert (row.columns["topic"], row.columns["held_ms"], row.columns["first_returned_at"]) == (
        f"unknown:{ORDERS_ID}",
        None,
        6_000_000,
    )


def test_offsets_that_are_altered_and_a_state_that_is_deleted_begin_anew():
    story = SharePartitionStory("g", PLACE, NAMES)
    told((0, snapshot(start=50)), (1, update((50, 59, AVAILABLE, 1))), story=story)
    rows = told((2, snapshot(start=20, state_epoch=2)), (3, update((50, 59, AVAILABLE, 1))), (4, deleted()), story=story)
    assert columns(rows, "share_progress", "change") == [("reset",), ("deleted",)]
    assert deliveries(rows, "held_ms") == [(50, 59, "returned", 1, None)]
    assert story.state() is None
    assert told((5, deleted()), story=story) == []


batches = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 9), st.sampled_from([0, 2, 3, 4]), st.integers(0, 3)).map(
        lambda each: (each[0], each[0] + each[1], *each[2:])
    ),
    max_size=4,
)


@given(st.lists(st.tuples(st.integers(0, 3), batches, st.sampled_from([-1, 0, 5, 15, 25])), max_size=12))
def test_the_state_is_the_share_coordinators(steps):
    """Some records are snapshots. Between any two, the story goes on in another pass."""
    story = SharePartitionStory("g", PLACE, NAMES)
    told((0, snapshot(start=0)), story=story)
    state = ShareSnapshotValue(0, 1, 0, 0, 0, 0, ())
    for seconds, (kind, chosen, wanted) in enumerate(steps):
        start = max(wanted, state.start_offset) if wanted >= 0 else wanted
        state = updated(state, ShareUpdateValue(0, -1, start, tuple(StateBatch(*each) for each in chosen)))
        whole = [tuple(each) for each in combined(state).state_batches]
        record = update(*chosen, start=start) if kind else snapshot(*whole, start=state.start_offset)
        rows = told((seconds, record), story=story)
        assert all(first <= last for first, last, *_ in deliveries(rows))
        story = SharePartitionStory.resumed("g", NAMES, story.state())
        now = story.now().columns
        assert now["start_offset"] == state.start_offset
        assert offsets(now["batches"]) == {
            offset: (each.delivery_state, each.delivery_count)
            for each in state.state_batches
            for offset in range(each.first_offset, each.last_offset + 1)
            if each[2:] != (0, 0)
        }


def offsets(found):
    numbers = {"Available": 0, "Acknowledged": 2, "Archiving": 3, "Archived": 4}
    told = [
        (offset, (numbers[each["state"]], each["delivery_count"]))
        for each in found
        for offset in range(each["first_offset"], each["last_offset"] + 1)
        if (each["state"], each["delivery_count"]) != ("Available", 0)
    ]
    assert len(dict(told)) == len(told)
    return dict(told)
