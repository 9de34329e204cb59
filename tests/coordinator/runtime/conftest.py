import pytest

from tests.coordinator.runtime.bed import Bed


@pytest.fixture
def bed():
    return Bed()
