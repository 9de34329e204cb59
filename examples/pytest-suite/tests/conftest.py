"""What is dear to set up is set up once: a day's orders. Each test has a fork of that, as ``kafka_fork``."""

import pytest

from odradek.testing import Broker

ORDERS = 200


@pytest.fixture(scope="session")
def kafka_snapshot():
    """A broker with the orders of a day, as odradek's fixture of this name is to be overridden."""
    with Broker(topics={"placed": 2, "invoices": 1, "reminders": 1}) as broker:
        broker.produce("placed", [(f"customer {number % 10}", {"total": number}) for number in range(ORDERS)])
        yield broker.snapshot()
