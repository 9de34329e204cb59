"""A cluster before anything happened to it; some tests have another."""

import pytest

from tests.controller.cluster.clusters import Cluster


@pytest.fixture
def cluster():
    return Cluster()
