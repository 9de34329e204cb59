"""How long a client waits before it connects again: Kafka's ``ExponentialBackoff``."""

from random import Random
from typing import Final

_JITTER: Final = 0.2
# Beyond this the doubling is past any maximum.
_MAX_DOUBLINGS: Final = 30


class ExponentialBackoff:
    """``initial_ms`` doubled with each failure up to ``max_ms``, and varied by a fifth so that clients do not come in step."""

    __slots__ = ("_initial_ms", "_max_ms", "_random")

    def __init__(self, initial_ms: int, max_ms: int, random: Random) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max_ms
        self._random = random

    def delay_ms(self, failures: int) -> float:
        """The wait after this many failures in a row, the first of them included; 0 after none."""
        if failures == 0:
            return 0.0
        doubled_ms = min(self._initial_ms << min(failures - 1, _MAX_DOUBLINGS), self._max_ms)
        return min(doubled_ms * self._random.uniform(1 - _JITTER, 1 + _JITTER), self._max_ms)
