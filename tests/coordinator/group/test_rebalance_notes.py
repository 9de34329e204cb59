from odradek.coordinator.group.classic.states import LATENCY_BOUNDS_MS, NAMED_MEMBERS, GroupCounters, RebalanceCause, named
from tests.coordinator.group.bed import Bed


def _lines(bed, event):
    return [fields for _, line, fields in bed.reports.lines if line == event]


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
