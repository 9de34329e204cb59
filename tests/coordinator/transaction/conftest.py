"""The bed of the tests of transactions."""

import pytest

from .bed import Bed


@pytest.fixture
def bed():
    return Bed()
