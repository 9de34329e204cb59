"""The quotas are those that the cluster's configs tell at the time."""

import pytest

from odradek.broker.replica.replication_quota import ReplicationThrottles
from odradek.common.config import load
from odradek.common.config.dynamic import ResourceType
from odradek.protocol.metadata_records import ConfigRecord
from odradek.timing.clock import VirtualClock
from tests.broker.cluster.images import image_of

ME, OTHER = 1, 2


class Bed:
    def __init__(self):
        self.image = image_of({"t": [ME, OTHER], "u": [ME]})
        self.config = load()
        self.throttles = ReplicationThrottles(self.image, self.config, VirtualClock(), ME)

    def configure(self, topic, **entries):
        for name, value in entries.items():
            record = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name.replace("_", "."), value=value)
            delta = self.image.replay([record])
            self.throttles.publish(delta)

    def throttled(self, quota):
        return [(topic, index) for topic, index in (("t", 0), ("t", 1), ("u", 0)) if quota.is_throttled(topic, index)]


@pytest.fixture
def bed():
    return Bed()


def test_leaders_and_followers_have_replicas_of_their_own(bed):
    assert bed.throttled(bed.throttles.leader) == bed.throttled(bed.throttles.follower) == []
    bed.configure("t", leader_replication_throttled_replicas="0:1,1:2", follower_replication_throttled_replicas="1:1")
    bed.configure("u", leader_replication_throttled_replicas="*")
    assert bed.throttled(bed.throttles.leader) == [("t", 0), ("u", 0)]
    assert bed.throttled(bed.throttles.follower) == [("t", 1)]
    bed.configure("u", leader_replication_throttled_replicas=None)
    assert bed.throttled(bed.throttles.leader) == [("t", 0)]


def test_leaders_and_followers_have_rates_of_their_own(bed):
    assert not bed.throttles.leader.rate.is_limited
    bed.config.override({"leader.replication.throttled.rate": "100"}, {"follower.replication.throttled.rate": "200"})
    assert [quota.rate.bound() for quota in (bed.throttles.leader, bed.throttles.follower)] == [100, 200]
