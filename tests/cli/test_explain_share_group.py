"""``odradek groups explain`` on the records of share groups."""

import pytest

from odradek.cli.explain_share_group import ShareGroupStory
from odradek.protocol.coordinator_records import decode_group_key, decode_value
from odradek.protocol.records import read_records
from odradek.timing.reply import Reply
from tests.coordinator.group.share_bed import ShareBed


class ToldBed(ShareBed):
    """Tells the records of its log as the command does."""

    def story(self, first=0):
        story = ShareGroupStory({topic.topic_id: name for name, topic in self.topics.by_name.items()})
        for batch in self.log.batches[first:]:
            for row in read_records(batch):
                key = decode_group_key(row.key)
                story.take(key, decode_value(key, row.value), row.timestamp)
        return story

    def told(self, first=0):
        """(changes, moves) of the last explanation."""
        last = self.story(first).explanations[-1]
        return last.changes, None if last.moves is None else [self._text(each) for each in last.moves]

    def _text(self, each):
        topic_id, index = each.what
        sign = "-" if each.target is None else "+"
        return f"{each.target or each.source} {sign}{self.topics.name_of(topic_id)}-{index}: {each.reason}"

    def follow(self, *members):
        for member_id in members:
            self.granted(member_id, self.share_group().members[member_id].member_epoch)


@pytest.fixture
def bed():
    """Members ``a`` and ``b``, in the order of their heartbeats."""
    bed = ToldBed(assignment_interval_ms=0)
    bed.topic("t", 2)
    bed.granted("a", 0)
    bed.initialize()
    bed.follow("a")
    return bed


def test_partitions_are_got_when_they_have_their_state_and_lost_to_new_members(bed):
    assert bed.told() == (["2 partitions have their state now"], ["a +t-0: no member had it", "a +t-1: no member had it"])
    bed.granted("b", 0)
    assert bed.told() == (["b joined"], ["a -t-0: a had more than its share", "b +t-0: b is new"])
    bed.beat_share("b", -1)
    bed.follow("a")
    assert bed.told() == (["b is gone"], ["a +t-0: a had fewer than its share"])


def test_subscriptions_and_topics_that_change(bed):
    topic_id = bed.topic("u", 1)
    bed.granted("a", 3, names=["u"])
    assert bed.told() == (
        ["a subscribes to u, previously to t"],
        ["a -t-0: a does not subscribe to it", "a -t-1: a does not subscribe to it"],
    )
    bed.initialize()
    bed.follow("a")
    bed.drop_topic("u")
    bed.operate(lambda groups: groups.drop_topics({topic_id}))
    bed.follow("a")
    changes, _ = bed.told()
    assert changes == ["its topics or their partitions have changed"]
    assert [each.reason for each in bed.story().explanations[-1].moves] == ["the topic is gone"]


def test_what_the_log_does_not_have_is_not_told(bed):
    bed.granted("b", 0)
    assert bed.told(first=len(bed.log.batches) - 1)[1] is None
    assert bed.story().is_there
    for member_id in "ab":
        bed.beat_share(member_id, -1)
    bed.write(lambda shard: shard.delete_group("g"), Reply())
    assert not bed.story().is_there
