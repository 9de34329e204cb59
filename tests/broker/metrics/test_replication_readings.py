"""What the metrics say of replicas that are in sync, and of those that are not."""

from types import SimpleNamespace

import pytest

from odradek.broker.metrics.replication import AT_MIN_ISR, LEADERS, REPLICATION_SECTION, UNDER_MIN_ISR, UNDER_REPLICATED
from odradek.broker.replica.partition import Partition
from tests.broker.replica.replication_bed import FIRST, LEADER, LEADER_EPOCH, SECOND, TOPIC_ID, ReplicationBed


def readings(*partitions):
    return {metric: value for metric, [((), value)] in REPLICATION_SECTION.read(SimpleNamespace(partitions=partitions))}


@pytest.mark.parametrize(
    ("isr", "under_replicated", "under_min", "at_min"),
    [((LEADER, FIRST, SECOND), 0, 0, 0), ((LEADER, FIRST), 1, 0, 1), ((LEADER,), 1, 1, 0)],
)
def test_a_leader_counts_replicas_in_sync(isr, under_replicated, under_min, at_min):
    found = readings(ReplicationBed(isr=isr, min_in_sync=2).partition)
    assert found == {LEADERS: 1, UNDER_REPLICATED: under_replicated, UNDER_MIN_ISR: under_min, AT_MIN_ISR: at_min}


def test_the_only_replica_is_as_many_as_there_must_be():
    bed = ReplicationBed()
    assert readings(Partition("t", 0, TOPIC_ID, 3, bed.log, lambda _: None))[AT_MIN_ISR] == 1


def test_a_follower_counts_for_nothing():
    bed = ReplicationBed(isr=(LEADER,))
    bed.partition.become_follower(SECOND, LEADER_EPOCH + 1)
    assert set(readings(bed.partition).values()) == {0}
