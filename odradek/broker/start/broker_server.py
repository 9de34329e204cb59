"""The broker with its listeners, as run by ``odradek serve``.

The listeners are bound before anything on disk is touched: if a port is taken, the data directory stays untouched. A stop
first refuses new requests, then sends the open responses, then stops the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.network.serving import ServedListeners, drain, tls_front
from odradek.broker.security.tokens import TokenLogins
from odradek.broker.start.server import Broker
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from odradek.broker.security.sasl.scram import ScramCredential
    from odradek.broker.start.controller_server import ControllerListeners
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.common.config.listener_config import Endpoint
    from odradek.protocol.scram import ScramMechanism
    from odradek.storage.filesystem import FileSystem
    from odradek.timing.background import Background
    from odradek.timing.clock import Clock


class BrokerServer:
    """A broker and its listeners. Call ``start`` and ``stop`` once each, on the loop that serves."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        background: Background | None = None,
        file_system: FileSystem | None = None,
        random: Random | None = None,
    ) -> None:
        self.broker = Broker(config, clock=clock, background=background, file_system=file_system, random=random)
        broker = self.broker
        self._listeners = ServedListeners(config, broker.clock, broker.timer, broker.call_soon, lambda: broker.dispatcher)
        self.connections = broker.connections = self._listeners.connections
        self.connections.response_memory = broker.response_memory
        self._token_logins = TokenLogins(lambda: self.broker)
        # Listeners of the controller, if it is in this process and listens for other brokers.
        self._controller_listeners: ControllerListeners | None = None

    @property
    def bound(self) -> Mapping[str, Endpoint]:
        """The addresses the listeners are bound to, by name."""
        return self._listeners.bound

    @property
    def bound_address(self) -> tuple[str, int]:
        """(host, port) of the first listener."""
        return self._listeners.bound_address

    async def start(self) -> None:
        """Open everything and listen. After an error nothing is open.

        Raises DataDirectoryLocked, InconsistentDataDirectory; InvalidConfig if an SSL listener's stores cannot be loaded, or a
        SASL listener's mechanisms are not available; OSError if a listener cannot be bound. In a cluster, it also raises the
        errors of ``Broker.join`` and ``ClusterMember.unfence``.
        """
        broker = self.broker
        config = broker.config
        endpoints = parse_endpoints("listeners", config["listeners"])
        self._listeners.tls = tls_front(config, [*endpoints, *config.controller_endpoints], broker.timer, broker.call_soon)
        find = self._scram_credential, self._token_logins.find
        self._listeners.enable_mechanisms(broker, endpoints, broker.background, *find)
        if config.controller_endpoints:
            await self._bind_controller()
        try:
            await self._listeners.bind(endpoints)
            broker.endpoints = broker.endpoints_for(self._listeners.bound)
            if broker.is_member:
                await broker.join(self._controller_listeners)
            else:
                broker.open()
        except BaseException:
            self._close_listeners()
            raise
        self.connections.ip_quotas = broker.controller.image.quotas
        try:
            await self._listeners.serve()
        except OSError:
            self._close_listeners()
            broker.close()
            raise
        broker.serve()
        if broker.member is not None:
            # From here on this broker may lead partitions. Clients that come earlier are told the leaders.
            try:
                await broker.member.unfence()
            except BaseException:
                await self.stop()
                raise

    async def stop(self) -> None:
        """Finish requests in flight, flush, mark the shutdown clean. In a cluster, other brokers take over leaderships first."""
        begun_ms = self.broker.clock.monotonic_ms()
        if self.broker.member is not None:
            await self.broker.member.leave()
        self._listeners.stop_accepting()
        self.broker.answer_waiting()
        await drain(self.connections)
        if self._controller_listeners is not None:
            await self._controller_listeners.drain()
        await self.broker.finish()
        log.info("broker stopped", took_ms=round(self.broker.clock.monotonic_ms() - begun_ms))

    def abandon(self) -> None:
        """End like a killed process: break connections; flush, answer and report nothing."""
        self._close_listeners()
        self.broker.abandon()

    async def _bind_controller(self) -> None:
        from odradek.broker.start.controller_server import ControllerListeners

        broker = self.broker
        self._controller_listeners = ControllerListeners(broker.config, broker.clock, broker.timer, broker.call_soon)
        self._controller_listeners.tls = self._listeners.tls
        self._controller_listeners.guard(broker.background)
        await self._controller_listeners.bind(broker.config.controller_endpoints)

    def _close_listeners(self) -> None:
        self._listeners.close()
        if self._controller_listeners is not None:
            self._controller_listeners.close()

    def _scram_credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return the image's current credential: it may have changed since the start."""
        return self.broker.controller.image.kept.scram_credential(user, mechanism)
