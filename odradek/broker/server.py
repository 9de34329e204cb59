"""The broker: every room put together, started and stopped.

Start: lock the data directory, read the metadata log, open every partition's log (recovering what an unclean stop left), bind the
listeners. Stop: take no more requests, answer those in flight, flush, write the checkpoints and the clean-shutdown marker, let go
of the lock. One thread and one event loop own all of it.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from odradek.broker.config.endpoints import parse_endpoints, per_ip_overrides
from odradek.broker.coordination.group_coordinator import GroupCoordinator
from odradek.broker.coordination.transaction_coordinator import TransactionCoordinator
from odradek.broker.logging import log as broker_log
from odradek.broker.network.connection import Connection
from odradek.broker.network.dispatch import Dispatcher
from odradek.broker.network.listeners import ConnectionLimits, ConnectionRegistry, Listeners, advertised_endpoints
from odradek.broker.replica.fetch_sessions import FetchSessions
from odradek.broker.replica.group_commit import GroupCommit
from odradek.broker.replica.housekeeping import Housekeeping
from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replica_moves import ReplicaMoves
from odradek.broker.storage_start import open_storage
from odradek.timing.driver import AsyncioDriver
from odradek.timing.purgatory import Purgatory
from odradek.timing.system_clock import SystemClock
from odradek.timing.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.config.endpoints import Endpoint
    from odradek.broker.metadata.controller import Controller
    from odradek.broker.replica.delayed_fetch import DelayedFetch
    from odradek.broker.replica.delayed_produce import DelayedProduce
    from odradek.storage.filesystem import FileSystem
    from odradek.storage.log_manager import LogManager
    from odradek.timing.clock import Clock

# How long stop() lets requests in flight finish.
_DRAIN_MS = 3000
_DRAIN_STEP_S = 0.01
_CLOSING_THREADS = 16


class Broker:
    """A broker over one data directory. ``start`` and ``stop`` on the loop that serves it; both once."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        file_system: FileSystem | None = None,
        random: Random | None = None,
    ) -> None:
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.random = random or Random()  # noqa: S311  ids of topics and fetch sessions are no secrets
        self.timer = Timer(self.clock)
        self.node_id: int = config["node.id"]
        self.rack: str | None = config["broker.rack"]
        self.fetch_purgatory: Purgatory[DelayedFetch] = Purgatory("Fetch", self.timer)
        self.produce_purgatory: Purgatory[DelayedProduce] = Purgatory("Produce", self.timer)
        self.partitions = Partitions()
        self.fetch_sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], self.random)
        self.group_commit = GroupCommit(self)
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.moves = ReplicaMoves(self)
        self.dispatcher = Dispatcher(self)
        self.connections = ConnectionRegistry(
            self._connection_limits,
            self.clock,
            self.timer,
        )
        self._file_system = file_system
        self._max_frame_bytes: int = config["socket.request.max.bytes"]
        self._listeners = Listeners(self._make_connection)
        self._advertised: dict[str, Endpoint] = {}
        self._driver: AsyncioDriver | None = None
        # Whom to tell, in one line, that the disks leave nothing to serve: the process should end then, as if it were killed.
        self.on_failed: Callable[[str], None] | None = None
        # Set by start().
        self.log_manager: LogManager
        self.controller: Controller
        self.housekeeping: Housekeeping
        self.log_cleaner: LogCleaner
        self.cluster_id: str

    @property
    def bound_address(self) -> tuple[str, int]:
        """(host, port) of the first listener."""
        endpoint = next(iter(self._listeners.bound.values()))
        return endpoint.host, endpoint.port

    @property
    def listener_names(self) -> list[str]:
        """The listeners that are bound."""
        return list(self._listeners.bound)

    @property
    def purgatories(self) -> tuple[Purgatory[Any], ...]:
        """Where requests wait."""
        return self.produce_purgatory, self.fetch_purgatory

    @property
    def timer_driver(self) -> AsyncioDriver | None:
        """What wakes the timer; None under a clock other than the system's, and before the start."""
        return self._driver

    def advertised(self, listener_name: str) -> tuple[str, int]:
        """The (host, port) that clients of a listener are told to connect to."""
        endpoint = self._advertised[listener_name]
        return endpoint.host, endpoint.port

    async def start(self) -> None:
        """Open everything and listen.

        Raises DataDirectoryLocked, InconsistentDataDirectory, or OSError where a listener cannot be bound; then nothing is open.
        """
        loop = asyncio.get_running_loop()
        # First of all, so that a broker whose port is taken leaves the data directory as it is.
        endpoints = parse_endpoints("listeners", self.config["listeners"])
        await self._listeners.bind(endpoints, loop, self.config["socket.listen.backlog.size"])
        advertised = parse_endpoints("advertised.listeners", self.config["advertised.listeners"] or ())
        self._advertised = advertised_endpoints(self._listeners.bound, advertised)
        try:
            storage = open_storage(self, self._file_system)
        except BaseException:
            await self._listeners.stop()
            raise
        self.log_manager = storage.log_manager
        self.controller = storage.controller
        self.cluster_id = storage.cluster_id
        if isinstance(self.clock, SystemClock):
            self._driver = AsyncioDriver(self.timer, loop)
        self.housekeeping = Housekeeping(self.config, self.log_manager, self.timer)
        self.log_cleaner = LogCleaner(self.config, self.log_manager, self.timer)
        try:
            await self._listeners.serve()
        except OSError:
            await self._listeners.stop()
            self._close()
            raise
        self.groups.start()
        self.transactions.start()
        self.moves.resume()

    async def stop(self) -> None:
        """Finish requests in flight, flush, mark the shutdown clean."""
        await self._listeners.stop()
        self.connections.stop_reading()
        # Before the drain: who waits for a rebalance is told to look for another coordinator.
        self.transactions.close()
        self.groups.close()
        for partition in self.partitions:
            for operation in self.fetch_purgatory.cancel_for_key(partition):
                operation.force_complete()
        deadline_ms = self.clock.monotonic_ms() + _DRAIN_MS
        while self.connections.busy() and self.clock.monotonic_ms() < deadline_ms:  # noqa: ASYNC110  a second at most
            await asyncio.sleep(_DRAIN_STEP_S)
        self.connections.close_all()
        # One turn of the loop, in which the transports close.
        await asyncio.sleep(0)
        self.timer.close()
        self.moves.close()
        await self.log_cleaner.finish()
        await self.housekeeping.finish()
        await self.group_commit.finish()
        self._close()

    def fail(self, reason: str) -> None:
        """There is nothing to serve from any more."""
        broker_log.warn("broker failed", reason=reason)
        if self.on_failed is not None:
            self.on_failed(reason)

    def _close(self) -> None:
        if self._driver is not None:
            self._driver.close()
        self.timer.close()
        try:
            self.controller.close()
        except BaseException:
            self.log_manager.release()
            raise
        threads = _CLOSING_THREADS if isinstance(self.clock, SystemClock) else 1
        self.log_manager.shutdown(now_ms=self.clock.now_ms(), threads=threads)

    def _connection_limits(self) -> ConnectionLimits:
        config = self.config
        return ConnectionLimits(
            max_connections=config["max.connections"],
            max_connections_per_ip=config["max.connections.per.ip"],
            per_ip_overrides=per_ip_overrides(config["max.connections.per.ip.overrides"]),
            max_idle_ms=config["connections.max.idle.ms"],
        )

    def _make_connection(self, listener_name: str) -> Connection:
        return Connection(self.dispatcher, self.connections, listener_name, self._max_frame_bytes)
