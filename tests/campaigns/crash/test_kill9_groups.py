"""kill -9 at random moments under groups of real clients. A short run of ``kill9_groups``, which says what it looks for."""

import gc
import logging

import pytest

from tests.campaigns.crash.kill9_groups import SETTINGS, kill_under_groups, summary
from tests.campaigns.crash.support import seeded
from tests.campaigns.crash.three_brokers import ThreeBrokers

KILLS = 3


pytestmark = pytest.mark.timeout(180)


def live_through_kills(broker, caplog):
    # Errors in captured records would keep those sockets alive.
    caplog.set_level(logging.CRITICAL, "kafka")
    print(summary(kill_under_groups(broker, seeded("groups"), KILLS)))
    gc.collect()


def test_groups_of_three_makes_and_either_protocol_live_through_kills_of_the_broker(broker_process, caplog):
    live_through_kills(broker_process(settings=SETTINGS), caplog)


def test_groups_go_on_at_the_others_when_brokers_of_a_cluster_are_killed(tmp_path, caplog):
    with ThreeBrokers(tmp_path / "cluster", SETTINGS) as brokers:
        live_through_kills(brokers, caplog)
