"""Each step of the Dockerfile runs in a clean root, and the containers of the compose file do their work there."""

import pytest

from tests.campaigns.image_steps.containers import built_and_run
from tests.campaigns.image_steps.root import missing

MISSING = missing()
# It takes minutes, so it begins first; and it builds odradek itself.
pytestmark = [
    pytest.mark.xdist_group("image"),
    pytest.mark.timeout(1200),
    pytest.mark.interpreted,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]


@pytest.fixture(scope="module")
def ran():
    with built_and_run(whole=False) as ran:
        yield ran


def test_the_steps_of_the_dockerfile_make_containers_that_do_their_work(ran):
    assert ran.violations() == []
