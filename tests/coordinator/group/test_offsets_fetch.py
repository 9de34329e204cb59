"""OffsetFetch: what is committed, and what is not."""

import pytest

from tests.coordinator.group.offsets_bed import FETCH, OTHER_TOPIC_ID, TOPIC_ID
from tests.coordinator.long_work import finished


def test_what_was_committed_last_is_fetched_with_its_epoch_and_metadata(bed):
    bed.commit({0: 10}, metadata="old")
    bed.commit({0: 20}, metadata="new")

    answer = finished(bed.fetching_all(FETCH.OffsetFetchRequestGroup(group_id="g", topics=None)))
    (partition,) = answer.topics[0].partitions

    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (20, 5, "new")


def test_where_nothing_is_committed_there_is_no_offset_and_no_error(bed):
    bed.commit({0: 10})

    assert bed.fetch(0, 1) == [10, -1]
    assert bed.fetch(0, topic="u") == [-1]
    assert bed.fetch(0, group_id="nobody") == [-1]
    assert bed.fetch_all("nobody") == {}


def test_all_topics_are_fetched_where_none_is_named(bed):
    bed.commit({0: 10, 1: 11})
    bed.commit({2: 12}, topic="u")

    assert bed.fetch_all() == {"t": {0: 10, 1: 11}, "u": {2: 12}}


def test_many_offsets_are_told_in_slices_as_they_were_at_the_first(bed):
    bed.commit(dict.fromkeys(range(3_000), 10))
    fetching = bed.fetching_all(FETCH.OffsetFetchRequestGroup(group_id="g", topics=None))
    next(fetching)
    bed.commit(dict.fromkeys(range(3_000), 20))
    answer = finished(fetching)
    assert {each.committed_offset for each in answer.topics[0].partitions} == {10}
    assert len(answer.topics[0].partitions) == 3_000


def test_a_commit_is_not_seen_before_it_is_committed_in_the_log(bed):
    bed.commit({0: 10})
    bed.log.held_back = True
    bed.ask_to_commit({0: 20, 1: 21})
    bed.ask_to_commit({0: 22}, topic="u")

    assert bed.fetch(0, 1) == [10, -1]
    assert bed.fetch_all() == {"t": {0: 10}}
    assert bed.fetch_latest(0, 1) == [20, 21]

    bed.log.hold_back_no_more()

    assert bed.fetch(0, 1) == [20, 21]
    assert bed.fetch_all() == {"t": {0: 20, 1: 21}, "u": {0: 22}}


def test_a_deletion_is_not_seen_before_it_is_committed_in_the_log(bed):
    bed.commit({0: 10})
    bed.log.held_back = True
    bed.delete_topic()
    bed.ask_to_commit({1: 30})

    assert bed.fetch(0, 1) == [10, -1]
    assert bed.fetch_latest(0, 1) == [-1, 30]

    bed.log.hold_back_no_more()

    assert bed.fetch(0, 1) == [-1, 30]


@pytest.mark.parametrize(
    ("committed_for", "asked_by", "found"),
    [(TOPIC_ID, TOPIC_ID, 10), (TOPIC_ID, None, 10), (None, TOPIC_ID, 10), (TOPIC_ID, OTHER_TOPIC_ID, -1)],
)
def test_an_offset_of_a_former_topic_of_that_name_is_none(bed, committed_for, asked_by, found):
    bed.commit({0: 10}, topic_id=committed_for)

    assert bed.fetch(0, topic_id=asked_by) == [found]
