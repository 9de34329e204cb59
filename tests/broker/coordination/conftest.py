"""Brokers without sockets, one after the other on the same files."""

import pytest

from odradek.broker.start.server import Broker
from odradek.common.config import load


@pytest.fixture
def new_broker(tmp_path):
    def new_broker(**configs):
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
        partitions = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
        return Broker(load(overrides=settings | partitions | {name.replace("_", "."): value for name, value in configs.items()}))

    return new_broker


@pytest.fixture
async def start(new_broker):
    """Starts a broker; the one before is stopped."""
    brokers = []

    async def start(**configs):
        if brokers:
            await brokers.pop().stop()
        brokers.append(new_broker(**configs))
        brokers[0].start()
        return brokers[0]

    yield start
    await brokers[0].stop()
