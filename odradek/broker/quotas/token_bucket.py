"""The tokens of a client that changes topics: Kafka's TokenBucket (KIP-599).

Tokens come at the quota's rate, up to as many as ``burst_s`` seconds bring. A change takes its tokens even where that leaves
fewer than none. Pure: times come in, in whole milliseconds.
"""

from typing import Final

_SECOND_MS: Final = 1_000


class TokenBucket:
    """One client's tokens; full at first. ``limit`` is the quota at the time, in tokens a second."""

    __slots__ = ("_burst_s", "_filled_ms", "_tokens")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens = 0.0
        self._filled_ms: int | None = None

    def tokens(self, limit: float, now_ms: int) -> float:
        """How many there are; below 0, what the client owes."""
        burst = self._burst_s * limit
        if self._filled_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * ((now_ms - self._filled_ms) / _SECOND_MS))
        self._filled_ms = now_ms
        return self._tokens

    def take(self, tokens: float, limit: float, now_ms: int) -> None:
        """Take so many, there or not."""
        self._tokens = min(self._burst_s * limit, self.tokens(limit, now_ms) - tokens)
