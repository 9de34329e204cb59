"""The settings of a ``NodeClient``, under Kafka's names, and its backoff between connection attempts."""

from dataclasses import dataclass
from random import Random
from typing import Final

from odradek.client.connection import DEFAULT_MAX_IN_FLIGHT, DEFAULT_MAX_RESPONSE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The settings, with the defaults of Kafka's clients.

    ``max_in_flight_requests`` is ``max.in.flight.requests.per.connection``. ``connection_setup_timeout_ms`` is
    ``socket.connection.setup.timeout.ms``, negotiation included. Two settings are not Kafka's: ``max_response_bytes``, and
    ``max_queued_requests``, the number of requests that may wait for a connection or for their turn on it.
    """

    client_id: str = "odradek"
    request_timeout_ms: int = 30_000
    connection_setup_timeout_ms: int = 10_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    max_in_flight_requests: int = DEFAULT_MAX_IN_FLIGHT
    max_queued_requests: int = 1_000
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES


_JITTER: Final = 0.2
# With more doublings the delay exceeds any maximum.
_MAX_DOUBLINGS: Final = 30


class ExponentialBackoff:
    """``initial_ms``, doubled with each failure up to ``max_ms``, and varied by a fifth so that clients do not come in step."""

    __slots__ = ("_initial_ms", "_max_ms", "_random")

    def __init__(self, initial_ms: int, max_ms: int, random: Random) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._random = random

    def delay_ms(self, failures: int) -> float:
        """Return the wait after this many failures in a row; 0 after none."""
        if failures == 0:
            return 0.0
        doubled_ms = min(self._initial_ms << min(failures - 1, _MAX_DOUBLINGS), self._max_ms)
        return min(doubled_ms * self._random.uniform(1 - _JITTER, 1 + _JITTER), self._max_ms)
