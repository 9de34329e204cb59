"""What ``odradek groups explain`` makes of the records of consumer groups."""

import re
import uuid

import pytest

from odradek.cli import explain_group
from odradek.cli.explain_group import ConsumerGroupStory
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import decode_group_key, decode_value
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.records import read_records
from tests.cli.test_groups import commit, join
from tests.coordinator.group.consumer_bed import ConsumerBed

BALANCE = "its owner had more than its share"
GONE = "its owner is gone"


class ToldBed(ConsumerBed):
    """Tells the records of its log as the command does."""

    def story(self, first=0):
        """Of the log from that batch on."""
        story = ConsumerGroupStory({name: topic.topic_id for name, topic in self.topics.by_name.items()})
        for batch in self.log.batches[first:]:
            for row in read_records(batch):
                key = decode_group_key(row.key)
                story.take(key, decode_value(key, row.value), row.timestamp)
        return story

    def told(self):
        """(changes, moves) of the last explanation."""
        last = self.story().explanations[-1]
        return last.changes, None if last.moves is None else [self._text(each) for each in last.moves]

    def _text(self, each):
        topic_id, index = each.what
        kept = "" if each.kept_ms is None else f", {each.kept_ms} ms"
        return f"{self.topics.name_of(topic_id)}-{index} {each.source} {each.target}: {each.reason}{kept}"


@pytest.fixture
def bed():
    bed = ToldBed(assignment_interval_ms=0)
    bed.topic("t", 4)
    return bed


def share(bed):
    """Have ``a`` with 0 and 1, and ``b`` with 2 and 3, which ``a`` has kept for 1,200 ms."""
    bed.accepted("a", 0)
    bed.accepted("b", 0)
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    bed.advance(1_200)
    bed.accepted("a", 2, owned={"t": [0, 1]})
    bed.accepted("b", 3)


def test_what_moves_and_how_long_it_was_kept(bed):
    bed.accepted("a", 0)
    assert bed.told() == (["a joined"], [f"t-{index} None a: nobody had any of its topic" for index in range(4)])
    bed.accepted("b", 0)
    assert bed.told() == (["b joined"], [f"t-2 a b: {BALANCE}", f"t-3 a b: {BALANCE}"])
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    bed.advance(1_200)
    bed.accepted("a", 2, owned={"t": [0, 1]})
    assert bed.told()[1] == [f"t-2 a b: {BALANCE}, 1200 ms", f"t-3 a b: {BALANCE}, 1200 ms"]


@pytest.mark.parametrize("leaves", [True, False])
def test_who_is_gone_is_gone(bed, leaves):
    share(bed)
    if leaves:
        bed.accepted("b", -1)
    else:
        bed.advance(30_000)
        bed.accepted("a", 3)
        bed.advance(20_000)
    bed.accepted("a", 3)
    assert bed.told() == (["b is gone"], [f"t-2 b a: {GONE}", f"t-3 b a: {GONE}"])


def test_who_kept_partitions_for_its_rebalance_timeout(bed):
    bed.accepted("a", 0, rebalance_timeout_ms=5_000)
    bed.accepted("b", 0)
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    bed.advance(5_000)
    bed.accepted("b", 3)
    [change] = bed.told()[0]
    assert change == "a is gone, 5000 ms after it was asked to give partitions up; its rebalance timeout is 5000 ms"


def test_a_static_member_that_comes_back_moves_nothing(bed):
    bed.accepted("a", 0, instance_id="i")
    bed.accepted("a", -2, instance_id="i")
    bed.accepted("a2", 0, instance_id="i", subscribed_topic_names=["t", "u"])
    changes, moves = bed.told()
    assert changes == [
        "static member a is away and keeps its partitions",
        "static member i came back as a2, replacing a",
        "a2 subscribes to t, u, previously to t",
    ]
    assert moves == []


def test_topics_subscriptions_and_expressions(bed):
    share(bed)
    bed.topic("t", 5)
    bed.accepted("a", 3)
    assert bed.told()[0] == ["its topics or their partitions have changed"]
    bed.accepted("b", 3, subscribed_topic_names=["t", "u"])
    assert bed.told()[0] == ["b subscribes to t, u, previously to t"]
    bed.accepted("c", 0, subscribed_topic_regex="t.*")
    bed.accepted("c", bed.group().members["c"].member_epoch)
    assert "the regular expression t.* matches t" in bed.told()[0]


def test_what_the_log_does_not_have_is_not_told(bed):
    share(bed)
    [last] = bed.story(first=1).explanations
    assert (last.epoch, last.changes, last.moves) == (3, ["b joined"], None)


def test_the_broker_and_the_log_tell_of_the_same_moves(bed):
    share(bed)
    bed.accepted("c", 0)
    bed.accepted("b", -1)
    bed.accepted("a", 3, owned={"t": [0, 1]})
    lines = [fields["moves"] for _, event, fields in bed.reports.lines if event == "a target assignment was computed"]
    told = [
        [f"t-{m.what[1]} from {m.source or 'nobody'} to {m.target or 'nobody'}: {m.reason}" for m in each.moves]
        for each in bed.story().explanations
    ]
    assert told == lines


def test_a_deleted_group_is_not_there(bed):
    bed.accepted("a", 0)
    assert bed.story().is_there
    bed.accepted("a", -1)
    bed.runtime.write(0, lambda shard: shard.delete_group("g"))
    bed.turn()
    assert not bed.story().is_there


def test_the_command_reads_the_log_of_a_broker(ask, ask_json, topic, client):
    group, member = f"group-{uuid.uuid4()}", str(uuid.uuid4())
    fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [topic], "topic_partitions": []}
    answer = client.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, group_id=group, member_id=member, member_epoch=0, **fields)
    assert answer.error_code == 0
    status, out, err = ask("groups", "explain", group)
    assert (status, err) == (0, "")
    assert re.match(rf"epoch 2, \S+: {member} joined\n  {topic}-0 from nobody to {member}: ", out)
    [told] = ask_json("groups", "explain", group)["assignments"]
    assert told["moves"][0] == {
        "topic": topic,
        "partition": 0,
        "from": None,
        "to": member,
        "reason": "nobody had any of its topic",
        "kept_ms": None,
    }


def test_a_group_that_is_not_there(ask):
    assert ask("groups", "explain", "nobody-s") == (1, "", "odradek: nobody-s: there is no such group (GROUP_ID_NOT_FOUND)\n")


def test_a_classic_group(ask, client, topic):
    group = f"group-{uuid.uuid4()}"
    join(client, group, topic, [0])
    status, out, err = ask("groups", "explain", group)
    assert (status, out) == (2, "")
    assert err.startswith(f"{group} is a classic group: its members assign the partitions themselves")


def test_a_group_of_committed_offsets_only(ask, client, topic):
    commit(client, "offsets-only", topic, {0: 3})
    assert ask("groups", "describe", "offsets-only")[0] == 0
    status, out, err = ask("groups", "explain", "offsets-only")
    assert (status, out) == (2, "")
    assert err == "offsets-only has committed offsets only: no member has joined it, so nothing was assigned\n"


def test_records_that_cannot_be_read(ask, topic, client, monkeypatch):
    join(client, "group-of-noise", topic, [0])
    monkeypatch.setattr(explain_group, "decode_group_key", unreadable)
    status, out, err = ask("groups", "explain", "group-of-noise")
    assert (status, out, err) == (1, "", "odradek: cannot read the records of group group-of-noise: a key of 1 bytes\n")


def unreadable(_data):
    raise MalformedMessage("a key of 1 bytes")
