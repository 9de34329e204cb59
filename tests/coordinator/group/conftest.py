"""The bed of the tests of offsets; those of members have their own."""

import pytest

from tests.coordinator.group.offsets_bed import OffsetsBed


@pytest.fixture
def bed():
    return OffsetsBed()
