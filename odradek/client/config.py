"""The settings of a ``NodeClient``, under Kafka's names."""

from dataclasses import dataclass

from odradek.client.connection import DEFAULT_MAX_IN_FLIGHT, DEFAULT_MAX_RESPONSE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Kafka's defaults, as its clients have them.

    ``max_in_flight_requests`` is ``max.in.flight.requests.per.connection``; ``connection_setup_timeout_ms`` is
    ``socket.connection.setup.timeout.ms``, negotiation included. Kafka has no ``max_response_bytes`` and no
    ``max_queued_requests``: how many requests may wait for a connection, or for their turn on it.
    """

    client_id: str = "odradek"
    request_timeout_ms: int = 30_000
    connection_setup_timeout_ms: int = 10_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    max_in_flight_requests: int = DEFAULT_MAX_IN_FLIGHT
    max_queued_requests: int = 1_000
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
