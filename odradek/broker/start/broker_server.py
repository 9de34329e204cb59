"""The broker with its listeners, as run by ``odradek serve``.

The listeners are bound before anything on disk is touched: if a port is taken, the data directory stays untouched. A stop
first refuses new requests, then sends the open responses, then stops the broker.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from odradek.broker.network.listeners import ServedListeners, advertised_endpoints, tls_front
from odradek.broker.start.server import DEFAULTS, Broker, BrokerOptions
from odradek.common.config.listener_config import parse_endpoints
from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.start.shared_server import SharedServer
    from odradek.common.config.listener_config import Endpoint


class BrokerServer:
    """A broker that serves, and its listeners. Call ``stop`` or ``abandon`` once, on the loop that serves."""

    def __init__(self, broker: Broker, listeners: ServedListeners, controllers: ServedListeners | None) -> None:
        """``controllers`` are the listeners of the controller, if it is in this process and listens for other brokers."""
        self.broker = broker
        self.connections = listeners.connections
        self._listeners = listeners
        self._controllers = controllers

    @classmethod
    async def start(cls, shared: SharedServer, options: BrokerOptions = DEFAULTS) -> BrokerServer:
        """Open everything and listen. After an error nothing is open.

        Raises DataDirectoryLocked, InconsistentDataDirectory; InvalidConfig if an SSL listener's stores cannot be loaded, or a
        SASL listener's mechanisms are not available; OSError if a listener cannot be bound. In a cluster, it also raises the
        errors of ``join_cluster`` and ``ClusterMember.unfence``.
        """
        config = shared.config
        with ExitStack() as undo:
            undo.callback(shared.abandon)
            endpoints = parse_endpoints("listeners", config["listeners"])
            tls = tls_front(config, [*endpoints, *config.controller_endpoints], shared.timer, shared.call_soon)
            listeners = ServedListeners(shared, endpoints, tls)
            undo.callback(listeners.close)
            controllers = None
            if config.controller_endpoints:
                controllers = ServedListeners(shared, config.controller_endpoints, tls)
                undo.callback(controllers.close)
                await controllers.bind()
            await listeners.bind()
            broker = await _open(shared, listeners, controllers, options)
            undo.callback(broker.abandon)
            options.on_open(broker)
            try:
                await listeners.serve(broker)
            except OSError:
                broker.close()
                raise
            undo.pop_all()
        server = cls(broker, listeners, controllers)
        broker.serve()
        # From here on this broker may lead partitions. Clients that come earlier are told the leaders.
        try:
            await broker.member.unfence()
        except BaseException:
            await server.stop()
            raise
        return server

    @property
    def bound(self) -> Mapping[str, Endpoint]:
        """The addresses the listeners are bound to, by name."""
        return self._listeners.bound

    @property
    def bound_address(self) -> tuple[str, int]:
        """(host, port) of the first listener."""
        return self._listeners.bound_address

    async def stop(self) -> None:
        """Finish requests in flight, flush, mark the shutdown clean. In a cluster, other brokers take over leaderships first."""
        begun_ms = self.broker.clock.monotonic_ms()
        await self.broker.member.leave()
        await self._listeners.stop()
        if self._controllers is not None:
            await self._controllers.stop()
        await self.broker.finish()
        log.info("broker stopped", took_ms=round(self.broker.clock.monotonic_ms() - begun_ms))

    def abandon(self) -> None:
        """End like a killed process: break connections; flush, answer and report nothing."""
        self._listeners.close()
        if self._controllers is not None:
            self._controllers.close()
        self.broker.abandon()


async def _open(
    shared: SharedServer, listeners: ServedListeners, controllers: ServedListeners | None, options: BrokerOptions
) -> Broker:
    """Take the broker's place in its cluster, and open it. After an error no lock is kept."""
    if shared.config.is_alone:
        return Broker.open_alone(shared, listeners.bound, listeners.connections, options)
    from odradek.broker.start.cluster_start import join_cluster

    joined = await join_cluster(shared, advertised_endpoints(shared.config, listeners.bound), controllers)
    try:
        return Broker.open(shared, joined, listeners.connections, options)
    except BaseException:
        await joined.membership.close()
        raise
