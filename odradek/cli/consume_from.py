"""``--from`` and ``--tail``: the first offset that ``odradek consume`` reads in each partition.

beginning, end      the ends of the log
42, -10             an offset; the last ten records
2026-11-27T09:30    a time in ISO 8601, in UTC unless it says otherwise
15m, 2h, 1d         so long ago: ms, s, m, h, d
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from odradek.cli.options import timestamp_ms_of
from odradek.client.apis import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.client.known_cluster import Partition

if TYPE_CHECKING:
    from odradek.client.cluster_client import ClusterClient

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class Start(NamedTuple):
    """A start: one of an offset (negative: from the end), a time, an age, or a timestamp that the protocol reserves."""

    offset: int | None = None
    timestamp_ms: int | None = None
    age_ms: int | None = None


BEGINNING: Final = Start(timestamp_ms=EARLIEST_TIMESTAMP)
END: Final = Start(timestamp_ms=LATEST_TIMESTAMP)


def parse_start(_context: click.Context, _option: click.Parameter, text: str | None) -> Start | None:
    """Parse ``--from``; the callback of the option."""
    if text is None:
        return None
    if text in {"beginning", "start", "earliest"}:
        return BEGINNING
    if text in {"end", "latest"}:
        return END
    if re.fullmatch(r"-?\d+", text):
        return Start(offset=int(text))
    if duration := _DURATION.fullmatch(text):
        return Start(age_ms=round(float(duration[1]) * _UNITS_MS[duration[2]]))
    try:
        return Start(timestamp_ms=timestamp_ms_of(text))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is none of beginning, end, an offset, an age such as 15m, a time such as 2026-01-31T12:00"
        ) from None


async def start_offsets(
    cluster: "ClusterClient", partitions: Iterable[Partition], start: Start, *, is_committed: bool
) -> dict[Partition, int]:
    """Return the first offset of each partition, within its log. Raises ClientError."""
    partitions = list(partitions)
    if start.offset is None:
        timestamp_ms = start.timestamp_ms
        if timestamp_ms is None:
            timestamp_ms = max(0, cluster.timer.clock.now_ms() - (start.age_ms or 0))
        return await cluster.list_offsets(dict.fromkeys(partitions, timestamp_ms), is_committed=is_committed)
    earliest = await cluster.list_offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
    latest = await cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP), is_committed=is_committed)
    found = {}
    for partition in partitions:
        offset = start.offset if start.offset >= 0 else latest[partition] + start.offset
        found[partition] = min(max(offset, earliest[partition]), latest[partition])
    return found
