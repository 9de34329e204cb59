"""kill -9 at random moments under groups of real clients. A short run of ``kill9_groups``, which says what it looks for."""

import gc
import logging

import pytest

from tests.campaigns.crash.kill9_groups import SETTINGS, kill_under_groups, summary
from tests.campaigns.crash.support import seeded

KILLS = 3


@pytest.mark.timeout(180)
# kafka-python leaves the sockets of connections that were refused to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_groups_of_three_makes_and_either_protocol_live_through_kills_of_the_broker(broker_process, caplog):
    # Errors in captured records would keep those sockets alive.
    caplog.set_level(logging.CRITICAL, "kafka")
    print(summary(kill_under_groups(broker_process(settings=SETTINGS), seeded("groups"), KILLS)))
    gc.collect()
