"""A started broker, with ``settings`` of the test's."""

import pytest

from tests.broker.metrics.bed import Bed


@pytest.fixture
def settings():
    return {}


@pytest.fixture
async def bed(settings):
    bed = Bed(**settings)
    async with bed.kit:
        yield bed
