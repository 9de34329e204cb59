"""The bed of the tests of transactions."""

import pytest

from tests.coordinator.transaction.bed import Bed


@pytest.fixture
def bed():
    return Bed()
