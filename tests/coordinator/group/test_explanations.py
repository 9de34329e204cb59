"""Why a target assignment is as it is: the lines of the log, and the counters."""

import pytest

from odradek.coordinator.group.consumer.explanations import MoveReason
from tests.coordinator.group.consumer_bed import ConsumerBed

BALANCE = "its owner had more than its share"
COMPUTED = "a target assignment was computed"


@pytest.fixture
def bed():
    bed = ConsumerBed(assignment_interval_ms=0, session_timeout_ms=45_000)
    bed.topic("t", 4)
    return bed


def told(bed):
    """(changes, moves) of the last assignment."""
    fields = [fields for _, event, fields in bed.reports.lines if event == COMPUTED][-1]
    assert fields["moved"] == len(fields["moves"])
    return fields["why"], fields["moves"]


def given_up(bed):
    return [fields for _, event, fields in bed.reports.lines if event == "all moved partitions were given up"]


def counters(bed):
    return bed.shard.consumer.why.counters


def share(bed):
    """Have ``a`` with 0 and 1, and ``b`` with 2 and 3."""
    bed.accepted("a", 0)
    bed.accepted("b", 0)
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    bed.accepted("a", 2, owned={"t": [0, 1]})
    bed.accepted("b", 3)


def test_the_first_assignment(bed):
    bed.accepted("a", 0)
    why = ["a joined"]
    moves = [f"t-{index} from nobody to a: nobody had any of its topic" for index in range(4)]
    assert bed.reports.lines[-1] == (
        "info",
        COMPUTED,
        {"group": "g", "epoch": 2, "assignor": "uniform", "members": 1, "why": why, "moved": 4, "moves": moves},
    )
    assert given_up(bed) == []


def test_what_moves_is_waited_for(bed):
    bed.accepted("a", 0)
    bed.accepted("b", 0)
    assert told(bed) == (["b joined"], [f"t-2 from a to b: {BALANCE}", f"t-3 from a to b: {BALANCE}"])
    bed.advance(700)
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    assert given_up(bed) == []
    bed.advance(500)
    bed.accepted("a", 2, owned={"t": [0, 1]})
    assert given_up(bed) == [{"group": "g", "epoch": 3, "took_ms": 1200, "last": "a"}]
    assert (counters(bed).given_up, counters(bed).kept_sum_ms, counters(bed).kept_max_ms) == (2, 2400, 1200)
    assert counters(bed).moves == {MoveReason.NEW_TOPIC: 4, MoveReason.BALANCE: 2}
    assert counters(bed).raised == 2


def test_a_member_that_left(bed):
    share(bed)
    bed.accepted("b", -1)
    bed.accepted("a", 3)
    gone = "its owner is gone"
    assert told(bed) == (["b left"], [f"t-2 from b to a: {gone}", f"t-3 from b to a: {gone}"])


def test_a_member_that_was_silent(bed):
    share(bed)
    bed.advance(30_000)
    bed.accepted("a", 3)
    bed.advance(20_000)
    bed.accepted("a", 3)
    assert told(bed)[0] == ["b was silent for its session timeout"]


def test_a_member_that_keeps_what_it_should_give_up(bed):
    bed.accepted("a", 0, rebalance_timeout_ms=5_000)
    bed.accepted("b", 0)
    bed.accepted("a", 2, owned={"t": [0, 1, 2, 3]})
    bed.advance(5_000)
    assert given_up(bed) == [{"group": "g", "epoch": 3, "took_ms": 5000, "last": "a"}]
    bed.accepted("b", 3)
    gone = "its owner is gone"
    assert told(bed) == (["a did not give up partitions in time"], [f"t-0 from a to b: {gone}", f"t-1 from a to b: {gone}"])


def test_a_static_member_that_comes_back_moves_nothing(bed):
    bed.accepted("a", 0, instance_id="i")
    bed.accepted("a", -2, instance_id="i")
    bed.accepted("a2", 0, instance_id="i", subscribed_topic_names=["t", "u"])
    assert told(bed) == (["a2 joined"], [])


def test_topics_and_subscriptions_that_change(bed):
    share(bed)
    bed.topic("t", 6)
    bed.accepted("a", 3)
    why, moves = told(bed)
    assert why == ["its topics have changed"]
    assert sorted(moves) == ["t-4 from nobody to a: the partition is new", "t-5 from nobody to b: the partition is new"]
    bed.accepted("b", 3, subscribed_topic_names=[])
    why, moves = told(bed)
    assert why == ["b subscribes to other topics"]
    assert {move.split(": ")[1] for move in moves} == {"its owner does not subscribe to its topic any more"}


def test_topics_that_an_expression_finds(bed):
    bed.accepted("a", 0, subscribed_topic_regex="t.*")
    bed.accepted("a", 1)
    assert told(bed)[0] == ["its regular expressions match other topics"]


def test_a_long_line_tells_the_first_and_how_many_more(bed):
    bed.topic("t", 30)
    bed.accepted("a", 0)
    fields = bed.reports.lines[-1][2]
    assert (fields["moved"], len(fields["moves"]), fields["moves"][-1]) == (30, 21, "and 10 more")


def test_a_group_that_is_gone_is_forgotten(bed):
    bed.accepted("a", 0)
    bed.accepted("a", -1)
    bed.runtime.write(0, lambda shard: shard.delete_group("g"))
    bed.turn()
    assert bed.shard.consumer.why.is_empty
