"""Some crash points of transactions, one scenario each, and that all are reached. The campaign crash-points runs them all."""

from importlib import import_module

import pytest

from tests.campaigns.crash.points.broker import DyingBroker
from tests.campaigns.crash.points.places import FILE_APPEND, Moment
from tests.campaigns.crash.points.points import BY_NAME, POINTS
from tests.campaigns.crash.points.run import make_templates, run_point
from tests.campaigns.crash.points.scenario import Ending
from tests.campaigns.crash.points.workloads import points_by_workload, reached_by
from tests.cases import each_case

SOME = (
    "first: topic half there",
    "init: producer ids torn",
    "init: Empty written",
    "partitions: Ongoing torn at 30",
    "produce: batch torn at 66",
    "produce: one of two",
    "roll: no snapshot",
    "offsets: commit written",
    "timeout: Prepare written",
    "take over: one marker",
    "stop: one snapshot",
    "end: Prepare torn at -1",
    "end: Prepare written",
    "end: not answered",
    "end: no marker yet",
    "markers: one",
    "markers: not the group's",
    "markers: on credit-0 torn at 30",
    "markers: on __consumer_offsets written",
    "markers: not indexed",
    "complete: Complete torn at 66",
    "complete: Complete written",
    "new producer id: Complete torn",
    "load: half resumed",
    "load: torn tail cut",
)


# One process: the templates take three brokers.
pytestmark = [pytest.mark.interpreted, pytest.mark.xdist_group("crash-points")]


BY_WORKLOAD = points_by_workload()


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    return make_templates(tmp_path_factory.mktemp("templates"))


@pytest.mark.parametrize(("number", "name"), list(enumerate(SOME)), ids=SOME)
def test_all_of_a_transaction_is_there_or_nothing_wherever_the_broker_is_killed(number, name, templates, tmp_path):
    point = BY_NAME[name]
    scenario = point.scenarios[number % len(point.scenarios)]
    outcome = run_point(point, scenario, templates, tmp_path)
    assert outcome.error == "", f"{outcome}\n{outcome.log}"


def test_a_point_that_the_broker_does_not_come_to_is_a_failure(templates, tmp_path, monkeypatch):
    monkeypatch.setattr(DyingBroker, "arm", lambda *_: None)
    point = BY_NAME["markers: all"]
    outcome = run_point(point, point.scenarios[0], templates, tmp_path)
    assert "the broker did not come to" in outcome.error


def test_a_kill_elsewhere_is_a_failure(tmp_path):
    point = BY_NAME["markers: all"]
    with DyingBroker(tmp_path / "data") as broker:
        broker.kill9()
        broker.arm(point, 0)
        broker.spawn()
        broker._process.kill()
        with pytest.raises(AssertionError, match="killed, but at"):
            broker.ensure_killed(point, 0)


def test_every_point_has_a_name_of_its_own():
    assert len(BY_NAME) == len(POINTS)


@each_case("target", sorted({place.target for point in POINTS for place in point.places}))
def test_every_place_is_one_that_can_be_wrapped(target):
    module, _, path = target.partition(":")
    owner = import_module(module)
    for name in path.split("."):
        owner = getattr(owner, name)
    assert callable(owner)


def test_only_a_files_append_is_torn():
    torn = [place for point in POINTS for place in point.places if place.moment is Moment.MIDDLE]
    assert {place.target for place in torn} == {FILE_APPEND}
    assert all(place.keep_bytes for place in torn)


@pytest.mark.parametrize("workload", BY_WORKLOAD, ids=str)
def test_a_workload_comes_to_all_of_its_points(workload, templates, tmp_path):
    points = BY_WORKLOAD[workload]
    reached = set(reached_by(workload, points, templates, tmp_path))
    assert [point.name for point in points if point.name not in reached] == []
    # A place that nothing calls is told as not reached.
    assert ("stop: asked" in reached) == (workload.ending is Ending.STOP)


def test_every_point_has_a_workload():
    assert {point.name for points in BY_WORKLOAD.values() for point in points} == set(BY_NAME)
