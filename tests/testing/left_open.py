"""What a hundred brokers leave is printed by ``python -m tests.testing.left_open ENDING BACKGROUND DIRECTORY``.

In a process of its own: another test's librdkafka client, of which nobody is rid yet, opens pipes at any time.
"""

import asyncio
import contextlib
import gc
import socket
import sys
import threading
from pathlib import Path

import uvloop

from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from tests.testing.test_socketless import DURABLE, SMALL, Client

BROKERS, ON_DISK = 100, 10


def descriptors():
    """What this process has open, by number."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        # The one by which this lists may be closed by now.
        with contextlib.suppress(FileNotFoundError):
            found.add((link.name, str(link.readlink())))
    return found


async def in_a_loop(ending, background, directory):
    """Have the brokers ``stop``, or ``kill`` them, or leave them (``nothing``); every tenth is on a real disk."""
    bound = []
    bind, socket.socket.bind = socket.socket.bind, lambda *_: bound.append("bound")
    gc.collect()
    threads, before = set(threading.enumerate()), descriptors()
    brokers = [
        SocketlessBroker(
            directory / str(number) if number % (BROKERS // ON_DISK) == 0 else None,
            configs=DURABLE,
            clock=VirtualClock(),
            background=background,
        )
        for number in range(BROKERS)
    ]
    for broker in brokers:
        await broker.start()
        assert (await Client(broker).produce()).error_code == 0
    for broker in brokers:
        if ending == "stop":
            await broker.stop()
        elif ending == "kill":
            broker.kill()
    if ending != "nothing":
        async with asyncio.timeout(20):
            while set(threading.enumerate()) - threads:  # noqa: ASYNC110  nobody tells when a thread has ended
                await asyncio.sleep(0.001)
    left = descriptors() - before
    socket.socket.bind = bind
    return [*bound, *sorted(left)]


def without_a_loop():
    """The same of brokers that bring their own."""
    gc.collect()
    before = descriptors()
    for _ in range(BROKERS // 5):
        with SocketlessBroker(configs=SMALL, clock=VirtualClock()) as broker:
            broker.settle()
    return sorted(descriptors() - before)


def main():
    ending, background, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if background == "no-loop":
        print(without_a_loop())
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(runner.run(in_a_loop(ending, background, directory)))


if __name__ == "__main__":
    main()
