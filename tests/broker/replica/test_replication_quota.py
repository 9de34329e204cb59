"""Replication takes no more than its quota, by replicas that are named and not in sync."""

import pytest

from odradek.broker.replica.replication_quota import ByteRate, ReplicationQuota
from odradek.common.config.definitions import MAX_LONG
from odradek.protocol.errors import ErrorCode
from odradek.timing.clock import VirtualClock
from tests.broker.replica.replication_bed import FIRST, LEADER, SECOND, ReplicationBed
from tests.broker.replica.test_follower_fetch import answer, read_of


class Limits:
    """A quota whose bound and replicas are the test's."""

    def __init__(self, clock, node_id, bound=100, entries=("*",)):
        self.bound, self.entries = bound, entries
        self.quota = ReplicationQuota(
            ByteRate(clock, lambda: self.bound, count=3, sample_s=1), node_id, lambda topic: self.entries if topic == "t" else ()
        )


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def limits(clock):
    return Limits(clock, LEADER)


def test_a_rate_is_that_of_the_samples_that_are_not_over(clock, limits):
    rate = limits.quota.rate
    rate.record(100)
    assert rate.bytes_per_s == 100
    clock.advance(500)
    rate.record(100)
    assert rate.bytes_per_s == 200
    clock.advance(1500)
    assert rate.bytes_per_s == 100
    rate.record(100)
    # The first sample is over, the second is one second old.
    clock.advance(1000)
    assert rate.bytes_per_s == 100
    clock.advance(2000)
    assert rate.bytes_per_s == 0


def test_what_takes_more_than_the_bound_waits_until_it_is_less(clock, limits):
    limits.quota.record("t", 0, 250)
    assert limits.quota.holds_back("t", 0)
    clock.advance(2400)
    assert limits.quota.holds_back("t", 0)
    clock.advance(200)
    assert not limits.quota.holds_back("t", 0)


def test_without_a_bound_nothing_waits_and_nothing_is_counted(limits):
    limits.bound = MAX_LONG
    limits.quota.record("t", 0, 1 << 40)
    assert not limits.quota.holds_back("t", 0)
    limits.bound = 0
    assert not limits.quota.holds_back("t", 0)


@pytest.mark.parametrize(
    ("entries", "throttled"), [(("*",), [0, 1, 2]), (("0:1", "2:1", "1:2"), [0, 2]), (("1:2",), []), ((), [])]
)
def test_only_this_brokers_replicas_that_are_named_are_throttled(limits, entries, throttled):
    limits.entries = entries
    assert [index for index in range(3) if limits.quota.is_throttled("t", index)] == throttled
    assert not limits.quota.is_throttled("other", 0)
    limits.quota.record("t", 1, 1000)
    assert limits.quota.rate.bytes_per_s == (1000 if 1 in throttled else 0)


def test_other_replicas_are_throttled_when_they_are_named(limits):
    assert limits.quota.is_throttled("t", 0)
    limits.entries = ()
    assert limits.quota.is_throttled("t", 0)
    limits.quota.forget()
    assert not limits.quota.is_throttled("t", 0)


def test_a_leader_gives_nothing_to_a_throttled_follower_that_is_not_in_sync(limits):
    bed = ReplicationBed(isr=(LEADER, FIRST))
    bed.replication.leader_quota = limits.quota
    bed.append()
    out, in_sync = read_of(bed, SECOND, broker_epoch=30), read_of(bed, FIRST)
    size_bytes = len(answer(out).records)
    # Trying to read does not count.
    assert limits.quota.rate.bytes_per_s == 0
    out.note_sent(bed.partition, size_bytes)
    assert limits.quota.rate.bytes_per_s == size_bytes
    in_sync.note_sent(bed.partition, 1000)
    assert (answer(out).error_code, answer(out).records) == (ErrorCode.NONE, b"")
    assert not out.has_enough()
    assert answer(in_sync).records
    assert bed.partition.fetched_bytes == 0


def with_quota(cluster, node_id, bound):
    """The throttle of a follower that begins to fetch only now."""
    limits = Limits(cluster.clock, node_id, bound)
    node = cluster.nodes[node_id]
    node.follow(cluster.leader, cluster.epoch)
    node.fetcher._quota = limits.quota
    return limits


async def test_a_follower_that_is_behind_fetches_no_faster_than_its_quota(cluster):
    cluster.nodes[3].stop_following()
    for _ in range(60):
        cluster.produce(5)
        await cluster.turn()
    assert cluster.isr == {1, 2}
    limits = with_quota(cluster, 3, 1000)
    size_bytes = len(cluster.leader.data)
    began_ms = cluster.clock.monotonic_ms()
    while len(cluster.nodes[3].data) < size_bytes:
        await cluster.turn()
        elapsed_s = (cluster.clock.monotonic_ms() - began_ms) / 1000
        # A segment may come on top, which is what one fetch brings.
        assert len(cluster.nodes[3].data) <= 1000 * max(elapsed_s, 1) + 2 * 1000
        assert elapsed_s < size_bytes / 500
    assert elapsed_s > size_bytes / 1000 - 4
    await cluster.quiet()
    assert limits.quota.rate.bytes_per_s <= 2000


async def test_a_follower_in_sync_is_not_held_back(cluster):
    await cluster.quiet()
    with_quota(cluster, 3, 1)
    await cluster.turn()
    for _ in range(20):
        cluster.produce(5)
        await cluster.turn()
        assert cluster.isr == {1, 2, 3}
    await cluster.quiet()
