"""A controller with its listeners in a separate process, as run by ``odradek serve`` if ``process.roles`` is controller.

Like a broker's, the listeners are bound before anything on disk is touched. ``ControllerListeners`` also serves a controller in a
broker's process.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.network.serving import ServedListeners, drain, tls_front
from odradek.broker.security.tokens import TokenLogins
from odradek.broker.start.controller_node import ControllerNode
from odradek.broker.start.storage_start import log_manager_for
from odradek.common.logging import log as broker_log
from odradek.protocol.errors import KafkaError
from odradek.storage.directories.data_directory import RESERVE_BYTES
from odradek.storage.filesystem import FileSystem, RealFileSystem
from odradek.timing.driver import AsyncioDriver
from odradek.timing.slices import Slices
from odradek.timing.system_clock import SystemClock
from odradek.timing.threaded_background import ThreadedBackground
from odradek.timing.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.network.dispatch import Dispatcher
    from odradek.broker.security.sasl.scram import ScramCredential
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.protocol.scram import ScramMechanism
    from odradek.storage.directories.log_manager import LogManager
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock


class ControllerListeners(ServedListeners):
    """The listeners of a controller. A SaslHost."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, timer: Timer, call_soon: Callable[[Callable[[], None]], object]
    ) -> None:
        super().__init__(config, clock, timer, call_soon, lambda: self.dispatcher)
        self.clock = clock
        self.timer = timer
        self._node: ControllerNode | None = None

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher of the controller that is served."""
        return self._served().dispatcher

    def guard(self, background: Background) -> None:
        """Set up the SASL listeners. Raises InvalidConfig."""
        find_token = TokenLogins(self._served).find
        self.enable_mechanisms(self, self.config.controller_endpoints, background, self._scram_credential, find_token)

    async def serve_node(self, node: ControllerNode) -> None:
        """Accept connections for ``node``. Raises OSError."""
        self._node = node
        self.connections.ip_quotas = node.controller.image.quotas
        await self.serve()

    async def drain(self) -> None:
        """Refuse new requests, send the open responses, and close the connections."""
        self.stop_accepting()
        if self._node is not None:
            self._node.leader.close()
        await drain(self.connections)

    def _served(self) -> ControllerNode:
        assert self._node is not None  # noqa: S101  no connection is accepted before
        return self._node

    def _scram_credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._served().controller.image.kept.scram_credential(user, mechanism)


class ControllerServer:
    """A controller and its listeners. Call ``start`` and ``stop`` once each, on the loop that serves."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        background: Background | None = None,
        file_system: FileSystem | None = None,
        random: Random | None = None,
    ) -> None:
        self.config = config
        self.node_id: int = config["node.id"]
        self.clock: Clock = clock or SystemClock()
        self.background: Background = background or ThreadedBackground()
        self.random = random or Random()  # noqa: S311  ids are no secrets
        self.timer = Timer(self.clock)
        self.slices = Slices(self.clock.monotonic_ms, self._call_soon)
        self._file_system = file_system or RealFileSystem(RESERVE_BYTES)
        self._listeners = ControllerListeners(config, self.clock, self.timer, self._call_soon)
        self._driver: AsyncioDriver | None = None
        # Called with the reason if the process should end as if it were killed.
        self.on_failed: Callable[[str], None] | None = None
        # Set by start().
        self.node: ControllerNode
        self.log_manager: LogManager

    @property
    def bound_address(self) -> tuple[str, int]:
        """(host, port) of the first listener."""
        return self._listeners.bound_address

    def new_uuid(self) -> UUID:
        """Return a random UUID, drawn with this process's seed."""
        return UUID(int=self.random.getrandbits(128), version=4)

    def fail(self, reason: str) -> None:
        """Report that the controller cannot go on."""
        broker_log.warn("controller failed", reason=reason)
        if self.on_failed is not None:
            self.on_failed(reason)

    async def start(self) -> None:
        """Open the metadata log, and listen.

        Raises DataDirectoryLocked, InconsistentDataDirectory, InvalidConfig, MetadataUnreadable, LogCorrupt, KafkaError, OSError,
        ValueError. After an error no lock is kept.
        """
        self._listeners.tls = tls_front(self.config, self.config.controller_endpoints, self.timer, self._call_soon)
        self._listeners.guard(self.background)
        await self._listeners.bind(self.config.controller_endpoints)
        try:
            self.log_manager = log_manager_for(self.config, self._file_system, self.new_uuid)
            identity = self.log_manager.start()
            try:
                self.node = ControllerNode(self, self._file_system, self.log_manager, identity, self._listeners.bound)
                if self.clock.passes_by_itself:
                    self._driver = AsyncioDriver(self.timer, asyncio.get_running_loop())
                await self._listeners.serve_node(self.node)
            except BaseException:
                self.log_manager.release()
                raise
        except BaseException:
            self._listeners.close()
            raise
        self.node.start()

    async def stop(self) -> None:
        """Finish requests in flight, and mark the stop as clean."""
        begun_ms = self.clock.monotonic_ms()
        self.node.abandon()
        await self._listeners.drain()
        self.slices.close()
        await self.background.finish()
        self._stop_driving()
        try:
            self.node.close()
        except (KafkaError, OSError) as error:
            broker_log.warn("cannot flush the metadata log", reason=str(error))
        self.log_manager.shutdown(now_ms=self.clock.now_ms())
        broker_log.info("controller stopped", took_ms=round(self.clock.monotonic_ms() - begun_ms))

    def abandon(self) -> None:
        """End like a killed process."""
        self.background.abandon()
        self._listeners.close()
        self.slices.close()
        self._stop_driving()
        if hasattr(self, "node"):
            self.node.abandon()
        if hasattr(self, "log_manager"):
            self.log_manager.release()

    def _stop_driving(self) -> None:
        if self._driver is not None:
            self._driver.close()
        self.timer.close()

    def _call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)
