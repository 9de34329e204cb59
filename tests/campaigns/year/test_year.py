"""A year of retention, compaction and expiry in a few seconds: of what a broker keeps, nothing grows for ever."""

import pytest

from tests.campaigns.year.life import KEPT, MEASURES, PRESENT, YEAR_DAYS, Lived, live

# One process: the year passes once.
pytestmark = [pytest.mark.xdist_group("year"), pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def year():
    return live(YEAR_DAYS, seed=1)


@pytest.mark.parametrize("name", MEASURES)
def test_after_a_year_there_is_no_more_than_after_months(year, name):
    assert not year.grows(name)


@pytest.mark.parametrize("name", PRESENT)
def test_there_is_something_of_it_all_the_time(year, name):
    assert not year.is_missed(name)


@pytest.mark.parametrize("name", KEPT)
def test_a_restart_after_a_year_finds_what_there_was(year, name):
    assert not year.is_lost(name)


def test_what_grows_or_goes_is_told():
    steady = dict.fromkeys(MEASURES, 100)
    measures = [steady | {"timers": 100 + count, "groups": 100 if count else 0} for count in range(73)]
    told = Lived(measures, steady | {"timers": 172, "offsets": 90}).violations()
    assert told == ["timers grows", "groups: none at times", "offsets: not the same after a restart"]
