"""How long a client is throttled for. Source: ``QuotaUtils`` and ``ControllerMutationQuotaManager`` of Apache Kafka 4.3."""

from math import floor
from typing import Final

_SECOND_MS: Final = 1_000
# A response says it in 32 bits.
MOST_MS: Final = (1 << 31) - 1


def rate_throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """How much longer ``window_ms`` would have to be for a rate over it to be ``limit``, if nothing more came."""
    return _rounded((rate - limit) / limit * window_ms)


def bucket_throttle_ms(tokens: float, limit: float) -> int:
    """Until a bucket with fewer than no tokens has none, at ``limit`` tokens a second."""
    return _rounded(-tokens / limit * _SECOND_MS)


def _rounded(time_ms: float) -> int:
    return min(floor(time_ms + 0.5), MOST_MS)
