"""Merging state batches, against a model of single records."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.share.batches import combine_batches
from odradek.coordinator.share.state import StateBatch

_BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 12),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)


def _by_record(batches, start_offset):
    """The winning (count, state) of each offset."""
    records = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start_offset), last + 1):
            records[offset] = max(records.get(offset, (count, state)), (count, state))
    return records


@given(_BATCHES, _BATCHES, st.integers(-1, 45))
def test_each_record_keeps_its_latest_delivery_and_batches_do_not_overlap(stored, update, start_offset):
    stored = combine_batches((), stored, -1)
    merged = combine_batches(stored, update, start_offset)

    assert merged == combine_batches((), [*stored, *update], start_offset)
    assert _by_record(merged, -1) == _by_record([*stored, *update], start_offset)
    for one, other in pairwise(merged):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or one[2:] != other[2:]
    assert sum(last - first + 1 for first, last, *_ in merged) == len(_by_record(merged, -1))


def test_neighbours_in_the_same_state_are_joined_and_a_single_batch_is_only_cut():
    cases = {
        "alike": ([(1, 5, 0, 1)], [(6, 9, 0, 1)], -1, [(1, 9, 0, 1)]),
        "alike after a merge": ([(0, 4, 2, 1), (5, 10, 0, 1)], [(5, 12, 2, 1)], -1, [(0, 12, 2, 1)]),
        "a later delivery within": ([(1, 9, 0, 1)], [(3, 4, 2, 1)], -1, [(1, 2, 0, 1), (3, 4, 2, 1), (5, 9, 0, 1)]),
        "an earlier delivery": ([(1, 9, 2, 2)], [(3, 12, 0, 1)], -1, [(1, 9, 2, 2), (10, 12, 0, 1)]),
        "cut at the start offset": ([(1, 9, 0, 1)], [], 4, [(4, 9, 0, 1)]),
        "below the start offset": ([(1, 9, 0, 1)], [], 10, []),
    }
    for name, (stored, update, start_offset, expected) in cases.items():
        merged = combine_batches([StateBatch(*each) for each in stored], [StateBatch(*each) for each in update], start_offset)
        assert list(merged) == expected, name
