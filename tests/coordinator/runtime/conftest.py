import pytest

from .bed import Bed


@pytest.fixture
def bed():
    return Bed()
