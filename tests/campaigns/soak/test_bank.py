"""A bank of real clients lives through kills of the broker and of its tellers: a short run of ``soak``, which says more."""

import gc
import logging
from dataclasses import replace

import pytest

from tests.campaigns.crash.support import seeded
from tests.campaigns.planted import FaultyBroker
from tests.campaigns.soak.books import Violation
from tests.campaigns.soak.settings import SETTINGS, Pace
from tests.campaigns.soak.soak import Soak

DURATION_S = 4.0
# Segments are closed after a second, since few records are written.
SHORT = {**SETTINGS, "log.roll.ms": 1_000, "log.cleaner.backoff.ms": 100}
# What tellers leave open is waited for at the end.
UNHARMED = Pace(
    orders_a_second=200,
    orders_a_transaction=10,
    broker_kill_interval_s=None,
    harm_interval_s=None,
    session_timeout_ms=2_000,
    transaction_timeout_ms=3_000,
)
COMPACTED_SOON = replace(UNHARMED, compaction_timeout_s=2.0)
HARMED = replace(
    UNHARMED, orders_a_second=100, orders_a_transaction=5, broker_kill_interval_s=(1.5, 2.5), harm_interval_s=(1.0, 2.0)
)


@pytest.fixture(autouse=True)
def _quiet_clients(caplog):
    # Errors in captured records would keep the sockets of refused connections alive.
    caplog.set_level(logging.CRITICAL, "kafka")
    caplog.set_level(logging.CRITICAL, "aiokafka")
    yield
    gc.collect()


@pytest.mark.timeout(240)
def test_money_is_conserved_and_every_order_carried_out_once_whoever_is_killed(broker_process, tmp_path):
    report = Soak(broker_process(settings=SHORT), tmp_path / "tellers", seeded("bank"), HARMED).run(DURATION_S)
    print(report)
    assert report.transfers > 0
    assert report.broker_kills > 1
    assert report.unmoved() == []


@pytest.mark.interpreted
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("fault", "every", "pace", "told"),
    [
        ("ledger-without-append", 20, UNHARMED, "a part is missing of transfers"),
        ("offsets-without-append", 3, UNHARMED, "at or behind the committed offsets|again by|a part is read"),
        ("offsets-without-compaction", 1, COMPACTED_SOON, "__consumer_offsets-1 is not compacted any more"),
    ],
)
def test_a_fault_that_is_put_in_is_found(tmp_path, fault, every, pace, told):
    broker = FaultyBroker(tmp_path / "broker", settings=SHORT).use("tests.campaigns.soak.faults", fault, every)
    with pytest.raises(Violation, match=told), broker:
        Soak(broker, tmp_path / "tellers", seeded("bank"), pace).run(60)
