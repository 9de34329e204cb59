"""What brokers with listeners leave, after each way to end them, is printed by ``python -m tests.testing.left_by_listeners``.

In a process of its own, as ``left_open`` is, and for its interrupts.
"""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from odradek.common.config.broker_config import InvalidConfig
from odradek.protocol.errors import KafkaError
from odradek.testing import Broker
from tests.testing.left_open import descriptors


def left_of(scenario, *arguments):
    """Its name, and the threads and descriptors that are there afterwards and were not before."""
    gc.collect()
    before = descriptors()
    scenario(*arguments)
    gc.collect()
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    print(scenario.__name__, threads, sorted(descriptors() - before))


def a_test_fails_while_clients_are_connected(directory):
    clients = []
    try:
        with Broker(directory) as broker, Broker(topics={"t": 1}) as other:
            for each in (broker, other):
                host, port = each.bootstrap_servers.split(":")
                clients.append(socket.create_connection((host, port)))
                clients[-1].sendall(b"\0\0")
                each.produce("t", ["v"])
            1 / 0  # noqa: B018
    except ZeroDivisionError:
        for client in clients:
            assert client.recv(1) == b""
            client.close()


def forks_on_a_directory_are_left(directory):
    with Broker(directory) as broker:
        broker.produce("t", ["v"])
        snapshot = broker.snapshot()
        with snapshot.fork() as fork:
            fork.produce("t", ["v"])
            broker.restore(snapshot)
            broker.produce("t", ["v"])


def a_start_fails(arguments, error):
    try:
        with Broker(**arguments):
            raise AssertionError
    except error:
        pass


def a_stop_is_cancelled():
    async def main():
        broker = Broker()
        await broker.start()
        stopping = asyncio.create_task(broker.stop())
        asyncio.get_running_loop().call_soon(stopping.cancel)
        try:
            await stopping
        except asyncio.CancelledError:
            assert not broker.is_running
        else:
            raise AssertionError

    asyncio.run(main())


class Interrupting(Broker):
    """Ctrl-C comes while the start, or a wait, is waited for."""

    moment = "start"

    async def start(self):
        await super().start()
        if self.moment == "start":
            os.kill(os.getpid(), signal.SIGINT)

    async def wait_for(self, **condition):
        os.kill(os.getpid(), signal.SIGINT)
        await super().wait_for(**condition)


def ctrl_c(moment):
    broker = Interrupting()
    broker.moment = moment
    try:
        with broker as running:
            running.wait_for(group="g", within=600)
    except KeyboardInterrupt:
        return
    raise AssertionError


def main():
    directory = Path(sys.argv[1])
    # A shell starts what runs in the background without it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What uvloop opens once in a process stays.
    with Broker():
        pass
    left_of(a_test_fails_while_clients_are_connected, directory)
    left_of(forks_on_a_directory_are_left, directory / "of_forks")
    assert [path.name for path in directory.iterdir() if ".snapshot-" in path.name or ".fork-" in path.name] == []
    left_of(a_start_fails, {"configs": {"num.partitions": "many"}}, InvalidConfig)
    left_of(a_start_fails, {"topics": {"orders": 1, "no name": 1}}, KafkaError)
    left_of(a_start_fails, {"directory": "/dev/null"}, OSError)
    left_of(a_stop_is_cancelled)
    left_of(ctrl_c, "start")
    left_of(ctrl_c, "wait")
    left_of(Broker().__enter__)


if __name__ == "__main__":
    main()
