from odradek.coordinator.group.classic.rebalance_notes import (
    LATENCY_BOUNDS_MS,
    NAMED_MEMBERS,
    GroupCounters,
    RebalanceCause,
    named,
)

from .bed import Bed


def _lines(bed, event):
    return [fields for _, line, fields in bed.reports.lines if line == event]


def test_a_rebalance_leaves_one_line_with_why_who_and_how_long():
    bed = Bed()
    (a,) = bed.stable("a")
    bed.reports.lines.clear()
    bed.advance(1_000)
    bed.join(client_id="b", version=3, reason="scaled up")
    bed.advance(500)
    bed.join(a, client_id="a")
    bed.sync(a, 2, {})
    assert _lines(bed, "rebalance completed") == [
        {
            "group": "g",
            "generation": 2,
            "cause": "member_added",
            "why": "member b-2 joined without a member id while the group was Stable; its client's reason: scaled up",
            "members": 2,
            "joined": ["b-2"],
            "left": [],
            "took_ms": 500.0,
        }
    ]
    assert len(bed.reports.lines) == 2  # and one of the members that were given nothing


def test_who_left_is_named():
    bed = Bed()
    a, b = bed.stable("a", "b")
    bed.reports.lines.clear()
    bed.leave((b, None, "closed"))
    bed.join(a)
    bed.sync(a, bed.group().generation, {a: b""})
    (line,) = _lines(bed, "rebalance completed")
    assert (line["left"], line["joined"], line["why"]) == ([b], [], f"{b} left; their clients' reasons: closed")


def test_a_static_member_that_comes_back_has_neither_come_nor_gone():
    bed = Bed()
    bed.join(instance_id="one")
    bed.advance(0)
    bed.sync("one-1", 1, {}, instance_id="one")
    bed.join(instance_id="one")
    bed.reports.lines.clear()
    bed.join("one-2", instance_id="one")
    bed.sync("one-2", 2, {"one-2": b""}, instance_id="one")
    (line,) = _lines(bed, "rebalance completed")
    assert (line["joined"], line["left"]) == ([], [])


def test_a_client_s_reason_is_kept_short():
    bed = Bed()
    (a,) = bed.stable("a")
    bed.join(a, reason="x" * 10_000)
    assert len(bed.group().notes.why) < 400


def test_of_many_members_some_are_named_and_all_are_counted():
    assert named(["b", "a"]) == ["a", "b"]
    many = named(str(number) for number in range(100))
    assert len(many) == NAMED_MEMBERS + 1
    assert many[-1] == f"and {100 - NAMED_MEMBERS} more"


def test_rebalances_are_counted_by_cause():
    bed = Bed()
    a, b = bed.stable("a", "b")
    bed.leave((b, None, None))
    bed.join(a)
    bed.sync(a, bed.group().generation, {})
    counters = bed.shard.classic.counters
    assert counters.rebalances_by_cause[RebalanceCause.MEMBER_LEFT] == 1
    assert counters.rebalances_completed == 2
    assert counters.last_rebalance_ms == bed.clock.monotonic_ms()


def test_a_rebalance_that_is_overtaken_is_counted_as_such():
    bed = Bed()
    bed.join(client_id="a", version=3)
    bed.advance(0)
    bed.join(client_id="b", version=3)
    assert bed.shard.classic.counters.rebalances_abandoned == 1
    assert len(_lines(bed, "rebalance abandoned")) == 1


def test_latencies_are_counted_in_the_bucket_whose_bound_they_do_not_pass():
    counters = GroupCounters()
    for took_ms in (0.0, 5.0, 5.1, 300_001.0):
        counters.note_completed(took_ms, 9.0)
    assert counters.latency_buckets[0] == 2
    assert counters.latency_buckets[1] == 1
    assert counters.latency_buckets[-1] == 1
    assert (len(counters.latency_buckets), counters.latency_max_ms) == (len(LATENCY_BOUNDS_MS) + 1, 300_001.0)
