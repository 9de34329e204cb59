"""Whatever is asked, and whichever appends fail: what is fetched is what was committed, before and after a restart."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.offsets_bed import OffsetsBed

GROUPS = st.sampled_from(["g", "h"])
TOPICS = st.sampled_from(["t", "u"])
PARTITIONS = st.integers(0, 2)
OPERATIONS = st.one_of(
    st.tuples(st.just("commit"), GROUPS, TOPICS, st.dictionaries(PARTITIONS, st.integers(0, 9), min_size=1)),
    st.tuples(st.just("delete"), GROUPS, TOPICS, st.lists(PARTITIONS, min_size=1)),
    st.tuples(st.just("delete topic"), st.none(), TOPICS, st.none()),
    st.tuples(st.just("delete group"), GROUPS, st.none(), st.none()),
)


def apply(model, kind, group, topic, what):
    """What the operation makes of a plain dict of (group, topic, partition)."""
    if kind == "commit":
        model.update({(group, topic, partition): offset for partition, offset in what.items()})
        return
    for key in list(model):
        if group in (None, key[0]) and topic in (None, key[1]) and (what is None or key[2] in what):
            del model[key]


def ask(bed, kind, group, topic, what):
    if kind == "commit":
        bed.ask_to_commit(what, topic=topic, group_id=group, turn=False)
    elif kind == "delete":
        bed.delete(*what, topic=topic, group_id=group)
    elif kind == "delete topic":
        bed.delete_topic(topic)
    else:
        bed.delete_group(group)


def state(bed):
    return {
        (group, topic, partition): offset
        for group in ("g", "h")
        for topic, offsets in bed.fetch_all(group).items()
        for partition, offset in offsets.items()
    }


@given(st.lists(st.tuples(st.booleans(), OPERATIONS), max_size=20))
def test_what_is_fetched_is_what_was_committed(operations):
    bed = OffsetsBed()
    model = {}
    for fails, operation in operations:
        bed.turn()
        bed.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS if fails else None
        ask(bed, *operation)
        bed.turn()
        if not fails:
            apply(model, *operation)
        assert state(bed) == model

    bed.log.failure = None
    bed.restart()
    bed.turn()

    assert state(bed) == model
    assert len(bed.committed) == len(model)
    assert bed.faults == [fault for fault in bed.faults if "append" in fault[0]]
