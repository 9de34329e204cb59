"""Values in samples of time, with their rates, averages and throttle times: Kafka's SampledStat.

    sample     begins with the first value after the previous sample is ``sample_ms`` old, and lasts until the next one begins
    obsolete   a sample without a value for ``count * sample_ms``: it is emptied, and begins again
    window     the time over which a rate is measured: since the oldest sample began. If that is shorter than ``count - 1``
               samples, whole samples are added, so that the first value of an idle client is no burst

One sample more than ``count`` is kept, since the oldest may overlap the window. Sums are made in Kafka's order, so that rates are
equal to the last bit. Pure: times are passed in, in whole milliseconds. Sources: ``SampledStat``, ``Rate``, ``Avg``,
``QuotaUtils`` and ``ControllerMutationQuotaManager`` of Apache Kafka 4.3.
"""

from math import floor
from typing import Final

_SECOND_MS: Final = 1_000


class _Sample:
    """The values of one sample."""

    __slots__ = ("began_ms", "events", "last_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Begin again, without values."""
        self.total = 0.0
        self.events = 0
        self.began_ms = now_ms
        self.last_ms = now_ms


class Samples:
    """``count`` samples of ``sample_ms`` each."""

    __slots__ = ("_count", "_current", "_sample_ms", "_samples")

    def __init__(self, count: int, sample_ms: int) -> None:
        self._count = count
        self._sample_ms = sample_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count a value."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.began_ms >= self._sample_ms:
            self._current = (self._current + 1) % (self._count + 1)
            if self._current >= len(samples):
                samples.append(_Sample(now_ms))
                sample = samples[self._current]
            else:
                sample = samples[self._current]
                sample.begin(now_ms)
        sample.total += value
        sample.events += 1
        sample.last_ms = now_ms

    def window_ms(self, now_ms: int) -> int:
        """Return the length of the window; at least 1."""
        self._forget(now_ms)
        elapsed_ms = now_ms - min((sample.began_ms for sample in self._samples), default=now_ms)
        missing = self._count - 1 - elapsed_ms // self._sample_ms
        if missing > 0:
            elapsed_ms += missing * self._sample_ms
        return max(elapsed_ms, 1)

    def per_s(self, now_ms: int) -> float:
        """Return the rate per second over the window."""
        self._forget(now_ms)
        total = 0.0
        for sample in self._samples:
            total += sample.total
        return total / (self.window_ms(now_ms) / _SECOND_MS)

    def average(self, now_ms: int) -> float | None:
        """Return the average value; None without values."""
        self._forget(now_ms)
        events = sum(sample.events for sample in self._samples)
        return sum(sample.total for sample in self._samples) / events if events else None

    def _forget(self, now_ms: int) -> None:
        """Empty the obsolete samples."""
        kept_ms = self._count * self._sample_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= kept_ms:
                sample.begin(now_ms)


# Throttle times are 32-bit integers in responses.
MOST_MS: Final = (1 << 31) - 1


def rate_throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """Return the time until the rate over ``window_ms`` falls to ``limit``, without further values."""
    return _rounded((rate - limit) / limit * window_ms)


def bucket_throttle_ms(tokens: float, limit: float) -> int:
    """Return the time until a bucket with a debt has 0 tokens, at ``limit`` tokens per second."""
    return _rounded(-tokens / limit * _SECOND_MS)


def _rounded(time_ms: float) -> int:
    return min(floor(time_ms + 0.5), MOST_MS)
