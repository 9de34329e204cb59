"""A bank of real clients lives through kills of the broker and of its tellers: a short run of ``soak``, which says more."""

import gc
import logging

import pytest

from tests.campaigns.crash.support import seeded
from tests.campaigns.soak.books import Violation
from tests.campaigns.soak.faulty_broker import FaultyBroker
from tests.campaigns.soak.settings import SETTINGS, Pace
from tests.campaigns.soak.soak import Soak

DURATION_S = 5.0
# Segments are closed after a second, since few records are written.
SHORT = {**SETTINGS, "log.roll.ms": 1_000, "log.cleaner.backoff.ms": 100}
PACE = Pace(orders_a_second=100, orders_a_transaction=5, broker_kill_interval_s=(2.0, 3.0), harm_interval_s=(1.5, 3.0))
UNHARMED = Pace(orders_a_second=200, orders_a_transaction=10, broker_kill_interval_s=None, harm_interval_s=None)


@pytest.fixture(autouse=True)
def _quiet_clients(caplog):
    # Errors in captured records would keep the sockets of refused connections alive.
    caplog.set_level(logging.CRITICAL, "kafka")
    caplog.set_level(logging.CRITICAL, "aiokafka")
    yield
    gc.collect()


@pytest.mark.timeout(240)
# kafka-python leaves the sockets of connections that were refused to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_money_is_conserved_and_every_order_carried_out_once_whoever_is_killed(broker_process, tmp_path):
    report = Soak(broker_process(settings=SHORT), tmp_path / "tellers", seeded("bank"), PACE).run(DURATION_S)
    print(report)
    assert report.transfers > 0
    assert report.broker_kills > 1
    assert report.unmoved() == []


@pytest.mark.interpreted
@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize(
    ("fault", "every", "told"),
    [
        ("ledger-without-append", 20, "a part is missing of transfers"),
        ("offsets-without-append", 3, "at or behind the committed offsets|again by|a part is read"),
    ],
)
def test_an_answer_without_its_append_is_found(tmp_path, fault, every, told):
    broker = FaultyBroker(tmp_path / "broker", settings=SHORT).use(fault, every)
    with pytest.raises(Violation, match=told), broker:
        Soak(broker, tmp_path / "tellers", seeded("bank"), UNHARMED).run(60)
