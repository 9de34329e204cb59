"""Brokers without sockets, one after the other on the same files."""

import pytest

from odradek.broker.start.server import Broker
from odradek.broker.start.shared_server import SharedServer
from odradek.common.config import load


@pytest.fixture
async def start(tmp_path):
    """Starts a broker; the one before is stopped."""
    brokers = []

    async def start(**configs):
        if brokers:
            await brokers.pop().stop()
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
        settings |= {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
        settings |= {name.replace("_", "."): value for name, value in configs.items()}
        brokers.append(Broker.start(SharedServer(load(overrides=settings))))
        return brokers[0]

    yield start
    await brokers[0].stop()
