"""An observer in memory, under a virtual clock, beside a quorum that does as it is told."""

import asyncio
from contextlib import suppress

import pytest

from odradek.controller.quorum.observer import ObserverFailed
from odradek.timing.clock import VirtualClock
from tests.client.net import settle
from tests.controller.quorum.fake_quorum import Following, Quorum
from tests.memory_filesystem import MemoryFileSystem


@pytest.fixture
def quorum():
    return Quorum()


@pytest.fixture
def file_system():
    return MemoryFileSystem()


@pytest.fixture
async def follow(quorum, file_system):
    """Starts an observer, on the files that the one before has left. ``stop`` ends it as kill -9 does: nothing is closed."""
    running = []

    async def stop():
        for following in running:
            following.task.cancel()
            with suppress(asyncio.CancelledError, ObserverFailed):
                await following.task
        running.clear()
        await settle()

    async def start(**config):
        await stop()
        following = Following(quorum, file_system, VirtualClock(), **config)
        following.task = asyncio.get_running_loop().create_task(following.observer.run())
        running.append(following)
        await settle()
        return following

    start.stop = stop
    yield start
    await stop()
