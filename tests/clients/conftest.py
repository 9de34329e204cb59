"""What the tests of every client library share."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess

CLIENT_TIMEOUT_S = 15.0


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run clients on the standard library's loop, as most of their users do; the broker has its own in another process."""
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture
def new_topic(broker: BrokerProcess, new_name: Callable[[], str]) -> Callable[..., str]:
    """Creates topics: ``new_topic(3, {"cleanup.policy": "compact"})`` gives the name of one with three partitions."""
    admin = AdminClient({"bootstrap.servers": broker.address})

    def create(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = new_name()
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        admin.create_topics([topic], operation_timeout=CLIENT_TIMEOUT_S)[name].result(CLIENT_TIMEOUT_S)
        return name

    return create
