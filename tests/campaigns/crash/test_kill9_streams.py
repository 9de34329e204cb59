"""kill -9 of a cluster's brokers under Kafka Streams: a short run of ``kill9_streams``, which says more.

``clients/streams`` kills a single broker, and an instance.
"""

import pytest

from tests.campaigns.crash.kill9_streams import kill_under_streams
from tests.campaigns.crash.support import seeded
from tests.campaigns.crash.three_brokers import ThreeBrokers
from tests.clients.streams.application import SETTINGS

KILLS = 3


@pytest.mark.xdist_group("three brokers")
@pytest.mark.timeout(500)
def test_sums_are_exact_though_brokers_are_killed_in_turn(tmp_path):
    with ThreeBrokers(tmp_path / "cluster", SETTINGS) as brokers:
        assert kill_under_streams(brokers, seeded("streams"), KILLS).orders > 0
