"""A bank of real clients lives through kills of the broker and of its tellers: a short run of ``soak``, which says more."""

import gc
import logging

import pytest

from tests.campaigns.crash.support import seeded
from tests.campaigns.soak.soak import SETTINGS, Soak

DURATION_S = 14.0
KILL_INTERVAL_S = (3.0, 5.0)


@pytest.mark.timeout(240)
# kafka-python leaves the sockets of connections that were refused to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_money_is_conserved_and_every_order_carried_out_once_whoever_is_killed(broker_process, tmp_path, caplog):
    # Errors in captured records would keep those sockets alive.
    caplog.set_level(logging.CRITICAL, "kafka")
    caplog.set_level(logging.CRITICAL, "aiokafka")
    report = Soak(broker_process(settings=SETTINGS), tmp_path / "tellers", seeded("bank")).run(DURATION_S, KILL_INTERVAL_S)
    print(report)
    gc.collect()
    assert report.transfers > 0
    assert report.broker_kills > 1
