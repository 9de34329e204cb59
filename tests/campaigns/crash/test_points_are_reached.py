"""Every crash point is one that its workload comes to: one broker a workload, which tells the points and is not killed."""

import pytest

from tests.campaigns.crash.points.points import BY_NAME
from tests.campaigns.crash.points.run import make_templates
from tests.campaigns.crash.points.scenario import Ending
from tests.campaigns.crash.points.workloads import points_by_workload, reached_by

# One process: the templates take three brokers.
pytestmark = [pytest.mark.interpreted, pytest.mark.xdist_group("crash-points-reached")]

BY_WORKLOAD = points_by_workload()


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    return make_templates(tmp_path_factory.mktemp("templates"))


@pytest.mark.parametrize("workload", BY_WORKLOAD, ids=str)
def test_a_workload_comes_to_all_of_its_points(workload, templates, tmp_path):
    points = BY_WORKLOAD[workload]
    reached = set(reached_by(workload, points, templates, tmp_path))
    assert [point.name for point in points if point.name not in reached] == []
    # A place that nothing calls is told as not reached.
    assert ("stop: asked" in reached) == (workload.ending is Ending.STOP)


def test_every_point_has_a_workload():
    assert {point.name for points in BY_WORKLOAD.values() for point in points} == set(BY_NAME)
