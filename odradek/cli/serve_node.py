"""The broker that ``odradek serve`` runs: a ``BrokerServer``, or the test kit's broker around one.

The kit's broker can be steered over HTTP: its clock, its faults, its snapshots. It is used for the HTTP port and for data in
memory, and costs a request nothing that can be measured. It compacts on a thread of the broker, not in a process of its own.
"""

import asyncio
import gc
import os
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.network.event_loop import BusyPoll
from odradek.broker.start.broker_server import BrokerServer
from odradek.cli import process
from odradek.cli.thread_switches import ThreadsChangeOften
from odradek.common.config.broker_config import BrokerConfig
from odradek.common.config.table_security import principals
from odradek.common.context import ANONYMOUS
from odradek.common.logging import lines_to, log
from odradek.timing.threaded_background import ThreadedBackground

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.protocol.api_keys import ApiKey
    from odradek.testing import threaded
    from odradek.testing.faults.faults import Faults
    from odradek.testing.faults.vocabulary import FaultKeywords
    from odradek.testing.in_process import LogLine
    from odradek.timing.clock import Clock


class Node(Protocol):
    """A broker across its start and stop."""

    @property
    def core(self) -> "BrokerCore":
        """The running broker."""

    @property
    def is_running(self) -> bool:
        """True from the start until the broker is stopped or killed."""

    @property
    def bound_address(self) -> tuple[str, int]:
        """(host, port) of the first listener."""

    async def start(self) -> None:
        """Start. Raises the errors of ``BrokerServer.start``."""

    async def stop(self) -> None:
        """Stop in good order."""


class PlainNode:
    """A ``BrokerServer``, with rules of faults if there are any."""

    is_running = False

    def __init__(self, config: BrokerConfig, rules: "list[FaultKeywords]", fail: Callable[[str], None]) -> None:
        self._faults: Faults | None = None
        files = None
        if rules:
            # Imported late: most brokers never need it.
            from odradek.testing.faults.faults import install, watched_files

            files = watched_files()
        self._server = BrokerServer(config, file_system=files, background=served_background())
        self.core = self._server.broker
        self.core.cleans_in_process = True
        if files is not None:
            log.warn("faults are injected", rules=len(rules))
            self._faults = install(self.core, files, rules)
        prepare(self._server, fail)

    @property
    def bound_address(self) -> tuple[str, int]:
        """See ``Node``."""
        return self._server.bound_address

    async def start(self) -> None:
        """See ``Node``."""
        await self._server.start()
        self.is_running = True
        self.core.log_start()

    async def stop(self) -> None:
        """See ``Node``."""
        self.is_running = False
        if self._faults is not None:
            self._faults.let_go()
        await self._server.stop()


def kit_node(settings: Mapping[str, str], fail: Callable[[str], None], *, is_in_memory: bool) -> "threaded.Broker":
    """Return the kit's broker, a ``Node``. Each process of it is set up like that of a ``PlainNode``."""
    # Imported late: a broker without HTTP port does not pay for it.
    from odradek.testing.threaded import Broker

    class Served(Broker):
        def _new_background(self) -> ThreadedBackground:
            return served_background()

    directory = None if is_in_memory else settings.get("log.dirs") or settings["log.dir"]
    broker = Served(directory, configs=settings, on_line=_print, has_own_configs=False)
    broker.on_process = lambda server: prepare(server, fail, is_in_memory=is_in_memory)
    return broker


def prepare(server: BrokerServer, fail: Callable[[str], None], *, is_in_memory: bool = False) -> None:
    """Set up a broker for a process that is its own. ``fail`` is called with the reason if its disks fail."""
    broker = server.broker
    broker.on_failed = fail
    # The collector would traverse the growing state of the coordinators again and again, for tens of milliseconds each time.
    broker.on_bulk_load = gc.freeze
    broker.on_memory_freed = process.trim_heap
    if is_in_memory:
        # Its clients are on the same machine, and tests.
        return
    broker.looks_for_directories = True
    window_us: int = broker.config["socket.busy.poll.us"] if usable_cores() > 1 else 0
    connections = server.connections
    # Only here: elsewhere it would compete with the user's own code, and on one core with its clients.
    clock = _PollClock(broker.clock)
    connections.busy_poll = BusyPoll(asyncio.get_running_loop().call_soon, clock, window_us / 1000, connections.outbox)


def served_background() -> ThreadedBackground:
    """Return threads beside which requests need not wait."""
    return ThreadedBackground(beside_long_work=ThreadsChangeOften())


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _PollClock:
    """A broker's clock for busy polling: while it stands still, or has another speed, polling ends at once."""

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self.passes_by_itself = clock.passes_by_itself
        self.now_ms = clock.now_ms
        self.machine_ms = clock.machine_ms
        self.attach, self.detach = clock.attach, clock.detach

    def monotonic_ms(self) -> float:
        """Return the clock's time; infinity if it does not pass as the machine's."""
        return self._clock.monotonic_ms() if self._clock.machine_ms(1.0) == 1.0 else inf


class Owner:
    """Asks a broker in the name of whoever started it: rules of faults do not see it, and it is a super user if there are any."""

    def __init__(self, core: "BrokerCore") -> None:
        self.core = core
        self._principal = next(iter(principals(core.config["super.users"])), ANONYMOUS)

    async def ask(self, api_key: "ApiKey", request: Any, version: int) -> Any:  # noqa: ANN401  any API's messages
        """Return the answer to a request."""
        from odradek.testing.asking import ask_core

        return await ask_core(self.core, api_key, version, "odradek", request, self._principal, is_own=True)


async def make_topics(core: "BrokerCore", topics: Mapping[str, int | None]) -> None:
    """Make the missing topics. A topic that exists with other partitions stays, and is a warning. Raises KafkaError."""
    from odradek.testing.records import create_topics

    found = core.controller.image.topics
    for name, count in topics.items():
        if count is not None and name in found and len(found[name].partitions) != count:
            log.warn("a topic exists with other partitions", topic=name, partitions=len(found[name].partitions), asked=count)
    await create_topics(Owner(core), topics, takes_others=True)


async def make_initial_state(core: "BrokerCore", path: "Path", content: dict[str, Any]) -> None:
    """Make what a file of ``--init`` says and is missing. Raises InvalidInitFile, OSError."""
    from odradek.cli.initial_state import InitialState

    await InitialState(path, content, Owner(core)).apply()


def _print(line: "LogLine") -> None:
    """Log a line like a normal broker."""
    with lines_to(None):
        log.tell(line.level, line.event, line.fields)
