"""The way from one broker to the others of its cluster: connections, kept while a broker has the same address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from odradek.client.node_client import ClientConfig, NodeClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from odradek.client.node_client import Connect
    from odradek.controller.quorum.leader_discovery import Address
    from odradek.timing.timer import Timer

# Requests in flight to one broker. Each may wait for a replication.
MAX_IN_FLIGHT: Final = 64


class PeerNetwork(NamedTuple):
    """The means of a broker to reach the others.

    ``connect`` returns the connector to an address. ``address_of`` returns a broker's address for other brokers, None if it is
    not alive. ``call_soon`` calls back when this turn of the loop ends. ``request_timeout_ms`` is ``request.timeout.ms``.
    """

    connect: Callable[[Address], Connect]
    address_of: Callable[[int], Address | None]
    call_soon: Callable[[Callable[[], None]], object]
    timer: Timer
    random: Random
    node_id: int
    request_timeout_ms: int

    def new_client(self, address: Address, purpose: str, max_in_flight: int = MAX_IN_FLIGHT) -> NodeClient:
        """Return a client of a broker. ``purpose`` is the end of its client id."""
        config = ClientConfig(
            client_id=f"broker-{self.node_id}-{purpose}",
            request_timeout_ms=self.request_timeout_ms,
            max_in_flight_requests=max_in_flight,
        )
        return NodeClient(self.connect(address), self.timer, self.random, config)


class Closable(Protocol):
    """One or more connections to a broker."""

    def close(self) -> None:
        """Close them. Requests without a response fail."""


ClientT = TypeVar("ClientT", bound=Closable)


class BrokerClients(Generic[ClientT]):
    """A client of each other broker, made when it is first needed. Loop thread only."""

    def __init__(self, network: PeerNetwork, new_client: Callable[[Address], ClientT]) -> None:
        self.network = network
        self._new_client = new_client
        self._clients: dict[int, tuple[Address, ClientT]] = {}

    def client_of(self, node_id: int) -> ClientT | None:
        """Return the client of a broker; None if it is not alive."""
        address = self.network.address_of(node_id)
        known = self._clients.get(node_id)
        if known is not None and known[0] == address:
            return known[1]
        if known is not None:
            known[1].close()
            del self._clients[node_id]
        if address is None:
            return None
        client = self._new_client(address)
        self._clients[node_id] = address, client
        return client

    def close(self) -> None:
        """Close all connections. Requests without a response fail."""
        for _, client in self._clients.values():
            client.close()
        self._clients.clear()
