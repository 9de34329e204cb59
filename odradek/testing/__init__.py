"""The test kit: the names that a test suite imports to run and inspect a broker.

    with Broker(topics={"orders": 3}) as broker:        # in memory, on a free port, in a thread of its own
        application(bootstrap_servers=broker.bootstrap_servers)
        broker.wait_for(group="billing", state="Stable", lag=0)
        assert broker.records("invoices")[0].json["total"] == 12
        broker.clock.advance(days=7)
        broker.faults.add(api="Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=1)

    snapshot = broker.snapshot()                        # transactions and groups included
    with snapshot.fork() as other:                      # a second broker with the same state
        broker.restore(snapshot)                        # the first one, as it was then

    async with Broker("data") as broker:                # in a directory, on the caller's event loop
        await broker.produce("orders", ["an order"])

``SocketlessBroker`` has no listener. It takes messages or bytes, and may have its own clock.

    with SocketlessBroker(clock=VirtualClock(), background="seeded", seed=7) as broker:
        answer = broker.ask(ApiKey.JOIN_GROUP, request, version=9, within_ms=3_000)
        broker.lose_power()                             # keeps the synced data, and nothing else
        broker.start()

``pytest_plugin`` has pytest's fixtures. pytest imports it in every run, and this package with it. So the names below are
imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.client.streams_groups import StreamsTask
    from odradek.testing.asking import Answer, Unanswered
    from odradek.testing.blocking import BlockingBroker, SocketlessBroker
    from odradek.testing.client_metrics import ClientMetrics, ClientPush
    from odradek.testing.disk import MemoryDisk
    from odradek.testing.in_flight import InFlightRecords
    from odradek.testing.in_process import InProcessBroker, LogLine
    from odradek.testing.kafka_container import KafkaContainer
    from odradek.testing.records import NewTopic, StoredRecord
    from odradek.testing.severed import SeverableFileSystem
    from odradek.testing.shared import SharedBroker
    from odradek.testing.state import Group, Member, Topic, Transaction
    from odradek.testing.steered_clock import SteeredClock
    from odradek.testing.threaded import Broker, Snapshot, ThreadedBroker
    from odradek.testing.timeline.events import Decision, Exchange
    from odradek.testing.timeline.replay import Difference, Replay, replay
    from odradek.testing.timeline.timeline import Timeline
    from odradek.testing.waiting import NotReached

__all__ = [
    "Answer",
    "BlockingBroker",
    "Broker",
    "ClientMetrics",
    "ClientPush",
    "Decision",
    "Difference",
    "Exchange",
    "Group",
    "InFlightRecords",
    "InProcessBroker",
    "KafkaContainer",
    "LogLine",
    "Member",
    "MemoryDisk",
    "NewTopic",
    "NotReached",
    "Replay",
    "SeverableFileSystem",
    "SharedBroker",
    "Snapshot",
    "SocketlessBroker",
    "SteeredClock",
    "StoredRecord",
    "StreamsTask",
    "ThreadedBroker",
    "Timeline",
    "Topic",
    "Transaction",
    "Unanswered",
    "replay",
]

_MODULES = {
    "asking": ("Answer", "Unanswered"),
    "blocking": ("BlockingBroker", "SocketlessBroker"),
    "client_metrics": ("ClientMetrics", "ClientPush"),
    "disk": ("MemoryDisk",),
    "in_flight": ("InFlightRecords",),
    "in_process": ("InProcessBroker", "LogLine"),
    "kafka_container": ("KafkaContainer",),
    "records": ("NewTopic", "StoredRecord"),
    "severed": ("SeverableFileSystem",),
    "shared": ("SharedBroker",),
    "steered_clock": ("SteeredClock",),
    "state": ("Group", "Member", "StreamsTask", "Topic", "Transaction"),
    "threaded": ("Broker", "Snapshot", "ThreadedBroker"),
    "timeline.events": ("Decision", "Exchange"),
    "timeline.replay": ("Difference", "Replay", "replay"),
    "timeline.timeline": ("Timeline",),
    "waiting": ("NotReached",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of ``__all__``."""
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value
