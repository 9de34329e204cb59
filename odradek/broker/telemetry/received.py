"""The metrics pushed by clients: the last value of each metric of each known client instance.

Clients push the increase since their last push (delta temporality). The increases are summed up here, so a scraped counter grows
from 0, whenever it is scraped. The number of series is limited, per instance and in all, since clients choose the names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.compression import TooMuchData, decompress
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.otlp_metrics import Buckets, TooManyPoints, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from odradek.protocol.otlp_metrics import ClientMetrics, DataPoint

# A client of a thousand partitions has some ten thousand points.
MOST_POINTS: Final = 20_000
_MOST_SERIES: Final = 5_000
_MOST_SERIES_IN_ALL: Final = 100_000

# The name of a metric, and the sorted attributes of a data point.
Series = tuple[str, tuple[tuple[str, str], ...]]


class Push(NamedTuple):
    """One push and its sender. Subscriptions match the ``attributes``; ``time_ms`` is the broker's time."""

    instance_id: UUID
    attributes: Mapping[str, str | None]
    metrics: ClientMetrics
    time_ms: int
    is_terminating: bool


def read_push(data: bytes, compression: int, limit_bytes: int) -> ClientMetrics:
    """Decompress and decode a push. KafkaError: INVALID_RECORD; TELEMETRY_TOO_LARGE above ``limit_bytes`` decompressed."""
    try:
        return decode(decompress(compression, data, limit_bytes), MOST_POINTS)
    except (TooMuchData, TooManyPoints) as error:
        raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, error.reason) from None
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from None


class ReceivedMetrics:
    """The pushed metrics by client instance. Loop thread only."""

    def __init__(self) -> None:
        self._by_instance: dict[UUID, _InstanceMetrics] = {}
        # Data points dropped because of the limits on series.
        self.dropped_points = 0
        self._series = 0

    def add(self, push: Push) -> None:
        """Add the data points of a push."""
        found = self._by_instance.get(push.instance_id)
        if found is None:
            found = self._by_instance[push.instance_id] = _InstanceMetrics(push.attributes)
        for point in push.metrics.points:
            series: Series = (point.name, tuple(sorted(point.attributes.items())))
            known = found.points.get(series)
            if known is not None:
                found.points[series] = _after(known, point)
            elif len(found.points) >= _MOST_SERIES or self._series >= _MOST_SERIES_IN_ALL:
                self.dropped_points += 1
            else:
                self._series += 1
                found.points[series] = point

    def forget(self, instance_id: UUID) -> None:
        """Drop the metrics of a client instance that is gone."""
        found = self._by_instance.pop(instance_id, None)
        self._series -= 0 if found is None else len(found.points)

    def all(self) -> Iterator[tuple[UUID, Mapping[str, str | None], Mapping[Series, DataPoint]]]:
        """Yield each client instance that has pushed, with its attributes and the last data point of each series."""
        for instance_id, found in self._by_instance.items():
            yield instance_id, found.attributes, found.points


class _InstanceMetrics:
    __slots__ = ("attributes", "points")

    def __init__(self, attributes: Mapping[str, str | None]) -> None:
        self.attributes = attributes
        self.points: dict[Series, DataPoint] = {}


def _after(known: DataPoint, point: DataPoint) -> DataPoint:
    """Return the data point that replaces both; deltas are added."""
    if not point.is_delta or known.kind is not point.kind:
        return point
    before, now = known.value, point.value
    if isinstance(before, Buckets) and isinstance(now, Buckets):
        if before.bounds != now.bounds or len(before.counts) != len(now.counts):
            return point
        counts = tuple(map(sum, zip(before.counts, now.counts, strict=True)))
        return point._replace(value=Buckets(before.count + now.count, before.total + now.total, now.bounds, counts))
    if isinstance(before, Buckets) or isinstance(now, Buckets):
        return point
    return point._replace(value=before + now)
