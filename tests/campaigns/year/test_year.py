"""A year of retention, compaction and expiry in a few seconds: of what a broker keeps, nothing grows for ever."""

import asyncio

import pytest

from odradek.broker.logging import log as broker_log
from odradek.timing.clock import VirtualClock
from tests.campaigns.year.busy_broker import BusyBroker
from tests.campaigns.year.disk import WatchedDisk
from tests.campaigns.year.measure import MEASURES, measure

# One process: the year passes once.
pytestmark = [pytest.mark.xdist_group("year"), pytest.mark.timeout(240)]

_DAYS, _MEASURED_EVERY = 365, 5
# Everything that has its time has had it by the end of the second month; the rest of the first half year is then compared with
# the second half, in which the tides may be a little higher.
_SETTLED, _HALF = 60 // _MEASURED_EVERY, _DAYS // 2 // _MEASURED_EVERY
_TIDE = 1.05


class Silence:
    """A logger for the broker's log: nothing may go wrong in this year."""

    def info(self, event, **fields):
        pass

    def warning(self, event, **fields):
        raise AssertionError(f"{event} {fields}")

    error = warning


@pytest.fixture(scope="module")
def year():
    """What there was every few days, what there was last before the broker was stopped, and what there was when it was back."""
    before, broker_log._logger = broker_log._logger, Silence()
    try:
        return _live()
    finally:
        broker_log._logger = before


def _live():
    loop = asyncio.new_event_loop()
    disk, clock = WatchedDisk(), VirtualClock()
    busy = BusyBroker(loop, disk, clock, seed=1)
    busy.start()
    busy.create_topics()
    measures = []
    for day in range(1, _DAYS + 1):
        busy.pass_a_day()
        if day % _MEASURED_EVERY == 0:
            measures.append(measure(busy.broker, disk))
    busy.stop()
    again = BusyBroker(loop, disk, clock, seed=2)
    again.start()
    again.load_coordinators()
    restarted = measure(again.broker, disk)
    again.stop()
    loop.close()
    return measures, restarted


@pytest.mark.parametrize("name", MEASURES)
def test_after_a_year_there_is_no_more_than_after_months(year, name):
    measures, _ = year
    values = [measured[name] for measured in measures]
    assert max(values[_HALF:]) <= max(values[_SETTLED:_HALF]) * _TIDE


@pytest.mark.parametrize("name", ["segments", ".snapshot files", "producers", "groups", "offsets", "transactional ids"])
def test_there_is_something_of_it_all_the_time(year, name):
    measures, _ = year
    assert min(measured[name] for measured in measures) > 0


@pytest.mark.parametrize("name", ["disk bytes", "logs", "segments", "groups", "offsets", "transactional ids"])
def test_a_restart_after_a_year_finds_what_there_was(year, name):
    measures, restarted = year
    assert restarted[name] == pytest.approx(measures[-1][name], rel=0.02)
