"""Timelines: changes can be taken back, and looked past, until they are committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.runtime.timeline import READ_ONLY, SnapshotRegistry, TimelineDict, TimelineValue


@pytest.fixture
def registry():
    return SnapshotRegistry()


@pytest.fixture
def timeline(registry):
    return TimelineDict(registry)


def at(registry, offset):
    registry.offset = offset
    return registry


def test_a_change_while_all_is_committed_is_not_remembered(registry, timeline):
    timeline["a"] = 1
    del timeline["a"]
    assert len(registry) == 0


def test_a_read_at_an_offset_sees_the_records_below_it(registry, timeline):
    for offset in range(3):
        at(registry, offset)
        timeline["a"] = offset
    assert [timeline.get_at("a", offset) for offset in range(4)] == [None, 0, 1, 2]
    assert timeline.get("a") == 2


def test_a_key_that_was_removed_is_still_there_below(registry, timeline):
    timeline["a"] = 1
    at(registry, 5)
    assert timeline.pop("a") == 1
    assert "a" not in timeline
    assert dict(timeline.items_at(5)) == {"a": 1}
    assert dict(timeline.items_at(6)) == {}


def test_roll_back_undoes_the_latest_change_first(registry, timeline):
    value = TimelineValue(registry, "start")
    timeline["a"] = 0
    for offset in (1, 2, 2, 3):
        at(registry, offset)
        timeline["a"] += 1
        timeline["b"] = offset
        value.set(offset)
    registry.roll_back(2)
    assert dict(timeline.items()) == {"a": 1, "b": 1}
    assert value.get() == 1
    registry.roll_back(0)
    assert dict(timeline.items()) == {"a": 0}
    assert value.get() == "start"
    assert len(registry) == 0


def test_a_timeline_within_a_timeline_comes_back_with_what_it_held():
    registry = SnapshotRegistry()
    outer = TimelineDict(registry)
    outer["x"] = inner = TimelineDict(registry)
    inner["a"] = 1
    at(registry, 1)
    del inner["a"]
    del outer["x"]
    registry.roll_back(1)
    assert outer["x"]["a"] == 1


def test_what_is_committed_is_not_rolled_back(registry, timeline):
    for offset in range(3):
        at(registry, offset)
        timeline[offset] = True
    registry.commit(2)
    registry.roll_back(0)
    assert list(timeline) == [0, 1]


def test_a_change_between_records_is_refused(registry, timeline):
    value = TimelineValue(registry, 1)
    at(registry, READ_ONLY)
    with pytest.raises(RuntimeError):
        timeline["a"] = 1
    with pytest.raises(RuntimeError):
        value.set(2)
    assert "a" not in timeline
    assert value.get() == 1


def test_removing_what_is_not_there_is_a_key_error():
    registry = at(SnapshotRegistry(), 3)
    timeline = TimelineDict(registry)
    with pytest.raises(KeyError):
        del timeline["a"]
    assert timeline.pop("a") is None
    assert len(registry) == 0


CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 9)), max_size=20)


@given(CHANGES, st.data())
def test_any_offset_reads_and_rolls_back_to_what_it_was_then(changes, data):
    registry = SnapshotRegistry()
    timeline = TimelineDict(registry)
    states = []
    for offset, (key, value) in enumerate(changes):
        states.append(dict(timeline.items()))
        at(registry, offset)
        if value is None:
            timeline.pop(key)
        else:
            timeline[key] = value
    states.append(dict(timeline.items()))
    committed = data.draw(st.integers(0, len(changes)), label="committed")
    registry.commit(committed)
    for offset in range(committed, len(states)):
        assert dict(timeline.items_at(offset)) == states[offset]
        assert {key: timeline.get_at(key, offset) for key in "abc"} == {key: states[offset].get(key) for key in "abc"}
    rolled_back = data.draw(st.integers(committed, len(changes)), label="rolled back")
    registry.roll_back(rolled_back)
    assert dict(timeline.items()) == states[rolled_back]
    registry.commit(len(changes))
    assert len(registry) == 0
    assert dict(timeline.items_at(len(changes))) == states[rolled_back]
