"""The broker that ``odradek serve`` runs: a ``BrokerServer``, or the test kit's broker around one.

The kit's broker can be steered over HTTP: its clock, its faults, its snapshots. It is used for the HTTP port and for data in
memory, and costs a request nothing that can be measured. It compacts on a thread of the broker, not in a process of its own.
"""

import asyncio
import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.network.event_loop import BusyPoll
from odradek.broker.start.broker_server import BrokerServer
from odradek.broker.start.server import BrokerOptions
from odradek.broker.start.shared_server import SharedServer
from odradek.cli import process
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
    from odradek.testing.faults.faults import ServedFaults
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

    def __init__(self, config: BrokerConfig, rules: "list[FaultKeywords]", fail: Callable[[str], None]) -> None:
        self._faults: ServedFaults | None = None
        files = None
        self._options = replace(_options(), cleans_in_process=True)
        if rules:
            # Imported late: most brokers never need it.
            from odradek.testing.faults import faults

            log.warn("faults are injected", rules=len(rules))
            files = faults.watched_files()
            self._faults = faults.ServedFaults(files, rules)
            self._options = replace(self._options, gates=self._faults.gates, on_open=self._open)
        self._shared = SharedServer(config, file_system=files, background=_background(), on_failed=fail)
        self._server: BrokerServer | None = None

    @property
    def is_running(self) -> bool:
        """See ``Node``."""
        return self._server is not None

    @property
    def core(self) -> "BrokerCore":
        """See ``Node``."""
        return self._started().broker

    @property
    def bound_address(self) -> tuple[str, int]:
        """See ``Node``."""
        return self._started().bound_address

    async def start(self) -> None:
        """See ``Node``."""
        self._server = await BrokerServer.start(self._shared, self._options)
        self.core.log_start()

    async def stop(self) -> None:
        """See ``Node``."""
        server, self._server = self._started(), None
        if self._faults is not None:
            self._faults.faults.let_go()
        await server.stop()

    def _open(self, broker: "BrokerCore") -> None:
        _poll_busily(broker)
        if self._faults is not None:
            self._faults.faults.serve(broker)

    def _started(self) -> BrokerServer:
        if self._server is None:
            raise RuntimeError("the broker does not run")
        return self._server


def kit_node(settings: Mapping[str, str], fail: Callable[[str], None], *, is_in_memory: bool) -> "threaded.Broker":
    """Return the kit's broker, a ``Node``. Each process of it is set up like that of a ``PlainNode``."""
    # Imported late: a broker without HTTP port does not pay for it.
    from odradek.testing.threaded import Broker

    class Served(Broker):
        def _new_background(self) -> ThreadedBackground:
            return _background()

        def _shared_server(self, config: BrokerConfig) -> SharedServer:
            shared = super()._shared_server(config)
            shared.on_failed = fail
            return shared

        def _options(self) -> BrokerOptions:
            served = _options()
            options: BrokerOptions = super()._options()
            options = replace(options, on_bulk_load=served.on_bulk_load, on_memory_freed=served.on_memory_freed)
            if is_in_memory:
                # Its clients are on the same machine, and tests.
                return options
            return replace(options, looks_for_directories=True, on_open=_poll_busily)

    directory = None if is_in_memory else settings.get("log.dirs") or settings["log.dir"]
    return Served(directory, configs=settings, on_line=_print, has_own_configs=False)


def _options() -> BrokerOptions:
    """Return the options of a broker whose process is its own."""
    # The collector would traverse the growing state of the coordinators again and again, for tens of milliseconds each time.
    return BrokerOptions(on_open=_poll_busily, on_bulk_load=gc.freeze, on_memory_freed=process.trim_heap)


def _poll_busily(broker: "BrokerCore") -> None:
    """Enable busy polling. Only here: elsewhere it would compete with the user's own code, and on one core with its clients."""
    window_us: int = broker.config["socket.busy.poll.us"] if usable_cores() > 1 else 0
    connections = broker.connections
    if connections is None:
        return
    clock = _PollClock(broker.clock)
    connections.busy_poll = BusyPoll(asyncio.get_running_loop().call_soon, clock, window_us / 1000, connections.outbox)


def _background() -> ThreadedBackground:
    """Return threads beside which requests need not wait."""
    return ThreadedBackground(beside_long_work=process.ThreadsChangeOften())


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
