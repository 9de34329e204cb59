import pytest

from odradek.broker.metadata.cluster_metadata import PublishingOrder

from .doubles import RecordedLog, Witness, make_controller


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
