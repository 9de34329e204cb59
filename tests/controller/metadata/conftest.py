import pytest

from odradek.controller.metadata.cluster_metadata import PublishingOrder
from tests.controller.metadata.doubles import RecordedLog, Witness, make_controller


@pytest.fixture
def log():
    return RecordedLog()


@pytest.fixture
def controller(log):
    return make_controller(log)


@pytest.fixture
def witness(controller):
    witness = Witness()
    controller.subscribe(witness, PublishingOrder.PARTITIONS)
    return witness
