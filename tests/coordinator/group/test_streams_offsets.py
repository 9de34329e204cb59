"""Committed offsets of streams groups: kept when a classic group becomes one, fenced by task, expired with the empty group."""

import pytest

from odradek.coordinator.group.offsets import OffsetConfig
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.offsets_bed import OffsetsBed
from tests.coordinator.group.streams_bed import STATELESS, StreamsBed


class Bed(OffsetsBed, StreamsBed):
    topology = STATELESS

    def __init__(self):
        super().__init__(OffsetConfig(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=100))
        self.topic("t", 2)
        self.topic("u", 1)

    def commit_of(self, member_id, epoch, topic="t"):
        topic_id = self.topics.by_name[topic].topic_id
        return self.commit({0: 5}, member_id=member_id, generation=epoch, topic=topic, topic_id=topic_id)


@pytest.fixture
def bed():
    return Bed()


def test_an_empty_classic_group_becomes_a_streams_group_with_its_offsets(bed):
    bed.commit({0: 7}, topic="t")
    assert bed.granted("m", 0)[1] == {"active": {"0": [0, 1]}}
    bed.restart()
    assert bed.streams_group().state == "Stable"
    assert list(bed.committed.by_group["g"]) == ["t"]


def test_a_commit_with_an_older_epoch_counts_if_the_member_has_had_the_task_since(bed):
    bed.granted("a", 0)
    bed.granted("b", 0)
    bed.again("a", owned={"active": {"0": [0, 1]}})
    bed.again("a", owned={"active": {"0": [0]}})
    bed.again("b", owned={})
    assert [bed.epoch_of(each) for each in "ab"] == [3, 3]
    none, stale = [ErrorCode.NONE], ErrorCode.STALE_MEMBER_EPOCH
    assert bed.commit_of("a", 3) == bed.commit_of("a", 2) == bed.commit_of("b", 3) == none
    # Partition 0 is a's, and the topic u is nobody's.
    assert bed.commit_of("b", 2) == bed.commit_of("a", 2, topic="u") == bed.commit_of("a", 4) == stale


def test_offsets_of_topics_that_are_read_stay_and_go_with_the_empty_group(bed):
    bed.granted("m", 0)
    bed.commit_of("m", 2)
    bed.commit_of("m", 2, topic="u")
    bed.advance(1_100)
    assert list(bed.committed.by_group["g"]) == ["t"]
    bed.beat_streams("m", -1)
    bed.advance(1_100)
    assert (list(bed.committed.by_group), bed.streams_group()) == ([], None)
