import pytest

from odradek.broker.metadata.controller import Controller
from odradek.broker.metadata.publishing import PublishingOrder

from .doubles import RecordedLog, Witness, make_controller


@pytest.fixture
def log() -> RecordedLog:
    return RecordedLog()


@pytest.fixture
def controller(log: RecordedLog) -> Controller:
    return make_controller(log)


@pytest.fixture
def witness(controller: Controller) -> Witness:
    witness = Witness()
    controller.subscribe(witness, PublishingOrder.PARTITIONS)
    return witness
