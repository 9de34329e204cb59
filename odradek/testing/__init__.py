"""What a test suite imports to hold a broker in its hand: in this process, without sockets, under a clock of its own.

    async with Broker() as broker:                      # in memory, the machine's time, threads as ``odradek serve`` has them
        answer = await broker.ask(ApiKey.API_VERSIONS, request, version=3)

    with Broker(clock=VirtualClock(), background=SeededBackground(Random(7)), seed=7) as broker:
        answer = broker.ask(ApiKey.JOIN_GROUP, request, version=9, within_ms=3_000)
        broker.lose_power()                             # what was synced is there, and nothing else
        broker.start()

Left out: listeners (``odradek.broker.broker_server`` has them), faults, snapshots, a pytest plugin.
"""

from odradek.testing.answer import Answer, Unanswered
from odradek.testing.blocking import BlockingBroker
from odradek.testing.broker import Broker
from odradek.testing.disk import MemoryDisk
from odradek.testing.in_process import InProcessBroker, LogLine
from odradek.testing.severed import SeverableFileSystem

__all__ = ["Answer", "BlockingBroker", "Broker", "InProcessBroker", "LogLine", "MemoryDisk", "SeverableFileSystem", "Unanswered"]
