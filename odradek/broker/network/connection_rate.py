"""How many connections a second there may be: ``max.connection.creation.rate``, and the rate of one address (KIP-612).

Kafka measures the rate over ten seconds, so that many connections may come at once after a silence. Its acceptor waits with each
connection above ``max.connection.creation.rate``, a second at most, and those behind wait to be accepted. Here a connection above
that rate is accepted, and its first request waits instead.
"""

_BURST_MS = 10_000.0
_MAX_INTERVAL_MS = 1_000.0


class ConnectionRate:
    """The turns given to connections so far. Loop thread only."""

    __slots__ = ("_turn_ms",)

    def __init__(self) -> None:
        # When the last connection's turn was or is, had they all kept the rate.
        self._turn_ms = float("-inf")

    def delay_ms(self, now_ms: float, per_second: int) -> float:
        """How long a connection made at ``now_ms`` (monotonic) waits; 0 as long as the rate is kept. Counts the connection."""
        interval_ms = min(1000 / per_second, _MAX_INTERVAL_MS) if per_second else _MAX_INTERVAL_MS
        burst_ms = _BURST_MS if per_second else 0.0
        self._turn_ms = max(self._turn_ms, now_ms - burst_ms) + interval_ms
        return max(0.0, self._turn_ms - now_ms)

    def excess_ms(self, now_ms: float, per_second: int) -> float:
        """The same, a second at most; one that would have to wait is not counted."""
        before_ms = self._turn_ms
        delay_ms = self.delay_ms(now_ms, per_second)
        if delay_ms > 0:
            self._turn_ms = before_ms
        return min(delay_ms, _MAX_INTERVAL_MS)

    def is_silent(self, now_ms: float) -> bool:
        """Whether the rate is what it would be without any connection so far."""
        return self._turn_ms <= now_ms - _BURST_MS
