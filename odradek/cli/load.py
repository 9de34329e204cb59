"""``odradek load``: produces at a rate or as fast as it can, and measures latencies. It ends by itself.

With ``--rate``, the latency of a request counts from the moment when it was due, not from when it was sent. So a broker that
stalls is charged for the requests that had to wait (Gil Tene: coordinated omission). End to end, it counts up to the record's
arrival at a consumer of the same process.
"""

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from struct import Struct
from typing import Any, Final

import click

from odradek.cli.async_cluster import find_topic, with_cluster
from odradek.cli.options import Servers, command_config, reaches_a_broker, show
from odradek.cli.produce import ACKS, CODECS
from odradek.client.apis import LATEST_TIMESTAMP
from odradek.client.cluster_client import ClusterClient, open_cluster
from odradek.client.fetcher import Fetcher
from odradek.client.producer import Producer, ProducerConfig
from odradek.protocol.records import Record

_DUE: Final = Struct(">d")
_COLUMNS: Final = (
    "measured", "requests", "records", "records_per_s", "mb_per_s", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"
)  # fmt: skip
_QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}
_MOST_S: Final = 3_600
# The time for the last records to arrive at the consumers.
_DRAIN_MS: Final = 2_000
_NOTICE_MS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """The load of one producer. ``interval_ms`` is None without a rate."""

    record_bytes: int
    records_a_request: int
    interval_ms: float | None
    duration_ms: float
    count: int | None
    has_keys: bool


@dataclass(slots=True)
class _Measured:
    """Latencies in ms, one a request, or one a record end to end."""

    latencies_ms: "array[float]" = field(default_factory=lambda: array("d"))
    records: int = 0
    first_ms: float = float("inf")
    last_ms: float = 0.0

    def row(self, name: str, record_bytes: int, *, is_of_requests: bool) -> dict[str, Any]:
        """Return the row of the table; missing values if nothing was measured."""
        found = sorted(self.latencies_ms)
        span_s = max(self.last_ms - self.first_ms, 1.0) / 1000
        per_s = self.records / span_s if self.records else None
        return {
            "measured": name,
            "requests": len(found) if is_of_requests else None,
            "records": self.records,
            "records_per_s": None if per_s is None else round(per_s),
            "mb_per_s": None if per_s is None else round(per_s * record_bytes / 1e6, 2),
            **{key: round(quantile(found, share), 3) if found else None for key, share in _QUANTILES.items()},
        }


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed (nearest rank)."""
    return ascending[max(0, ceil(share * len(ascending)) - 1)]


@click.command()
@click.argument("topic")
@reaches_a_broker
@click.option("--producers", type=click.IntRange(1, 1_000), default=1, show_default=True, help="Each with its own connection.")
@click.option("--consumers", type=click.IntRange(0, 100), default=0, show_default=True, help="Measure end to end.")
@click.option("--record-bytes", type=click.IntRange(_DUE.size, 1_000_000), default=100, show_default=True)
@click.option("--batch", type=click.IntRange(1, 100_000), default=100, show_default=True, help="Records in a request.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Records a second, of all producers.  [default: no limit]")
@click.option("--duration", type=click.FloatRange(0, _MOST_S, min_open=True), default=10.0, show_default=True, help="Seconds.")
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after this many records, if that is earlier.")
@click.option("--keys", "has_keys", is_flag=True, help="Give each record a key, so that they go to all partitions.")
@click.option("-z", "--compression", type=click.Choice(list(CODECS)), default="none", show_default=True)
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True, help="The replicas to wait for.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def load(topic: str, bootstrap: Servers, as_json: bool, **options: Any) -> int:  # noqa: ANN401
    """Produce for some seconds, and print records a second and the percentiles of latency.

    This process may be the limit: it takes some 3 microseconds a record, 8 with consumers.
    """
    producers, batch, count = options["producers"], options["batch"], options["count"]
    wanted = _Load(
        record_bytes=options["record_bytes"],
        records_a_request=batch if count is None else min(batch, count),
        interval_ms=None if options["rate"] is None else 1000 * batch * producers / options["rate"],
        duration_ms=options["duration"] * 1000,
        count=count,
        has_keys=options["has_keys"],
    )
    config = ProducerConfig(acks=ACKS[options["acks"]], compression=CODECS[options["compression"]])
    run = _Run(bootstrap, topic, config, wanted)
    with_cluster(bootstrap, lambda cluster: run.run(cluster, producers, options["consumers"]))
    rows = [run.produced.row("produce", wanted.record_bytes, is_of_requests=True)]
    if options["consumers"]:
        rows.append(run.consumed.row("end to end", wanted.record_bytes, is_of_requests=False))
    show(_COLUMNS, rows, as_json=as_json)
    return 0


class _Run:
    """The producers and consumers, and what they measure."""

    def __init__(self, bootstrap: Servers, topic: str, config: ProducerConfig, load_wanted: _Load) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._config = config
        self._load = load_wanted
        self._left = load_wanted.count
        self.produced = _Measured()
        self.consumed = _Measured()

    async def run(self, cluster: ClusterClient, producers: int, consumers: int) -> None:
        """Run them until time or count is over. Raises ClientError."""
        if await find_topic(cluster, self._topic, create=True):
            click.echo(f"odradek: there was no topic {self._topic}: the broker has created it", err=True)
        ends = dict.fromkeys(((self._topic, index) for index in cluster.leaders(self._topic)), LATEST_TIMESTAMP)
        positions = await cluster.list_offsets(ends)
        fetchers = [Fetcher(cluster, 0) for _ in range(min(consumers, len(positions)))]
        for number, fetcher in enumerate(fetchers):
            fetcher.assign(dict(list(positions.items())[number :: len(fetchers)]))
        try:
            await self._run_all(cluster, fetchers, producers)
        except BaseExceptionGroup as failures:
            # The others were cancelled for the first one.
            raise failures.exceptions[0] from None
        finally:
            for fetcher in fetchers:
                fetcher.close()

    async def _run_all(self, cluster: ClusterClient, fetchers: list[Fetcher], producers: int) -> None:
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(self._consume(cluster, fetcher)) for fetcher in fetchers]
            writing = [group.create_task(self._produce(number, producers)) for number in range(producers)]
            await asyncio.wait(writing)
            deadline_ms = cluster.timer.clock.monotonic_ms() + _DRAIN_MS
            while reading and self.consumed.records < self.produced.records:
                if cluster.timer.clock.monotonic_ms() > deadline_ms:
                    break
                await cluster.sleep(_NOTICE_MS)
            for task in reading:
                task.cancel()

    async def _produce(self, number: int, producers: int) -> None:
        """Run a producer with its own connections."""
        wanted = self._load
        async with open_cluster(self._bootstrap, "odradek-load", *command_config()) as cluster:
            await cluster.refresh([self._topic])
            producer = Producer(cluster, self._topic, self._config)
            await producer.start()
            clock = cluster.timer.clock
            begun_ms = clock.monotonic_ms()
            self.produced.first_ms = min(self.produced.first_ms, begun_ms)
            filling = bytes(wanted.record_bytes - _DUE.size)
            turn = 0
            while True:
                due_ms = now_ms = clock.monotonic_ms()
                if wanted.interval_ms is not None:
                    due_ms = begun_ms + (turn + number / producers) * wanted.interval_ms
                    if due_ms > now_ms and due_ms - begun_ms < wanted.duration_ms:
                        await cluster.sleep(due_ms - now_ms)
                if max(due_ms, clock.monotonic_ms()) - begun_ms >= wanted.duration_ms or self._left == 0:
                    return
                size = wanted.records_a_request if self._left is None else min(wanted.records_a_request, self._left)
                self._left = None if self._left is None else self._left - size
                value, stamp_ms = _DUE.pack(due_ms) + filling, clock.now_ms()
                keys = [b"%d" % key if wanted.has_keys else None for key in range(turn * size, turn * size + size)]
                await producer.send((None, Record(-1, stamp_ms, key, value)) for key in keys)
                await producer.flush()
                done_ms = clock.monotonic_ms()
                self.produced.latencies_ms.append(done_ms - due_ms)
                self.produced.records += size
                self.produced.last_ms = max(self.produced.last_ms, done_ms)
                turn += 1

    async def _consume(self, cluster: ClusterClient, fetcher: Fetcher) -> None:
        measured = self.consumed
        while True:
            fetched = await fetcher.next(_NOTICE_MS)
            if fetched is None:
                continue
            now_ms = cluster.timer.clock.monotonic_ms()
            measured.first_ms = min(measured.first_ms, now_ms)
            measured.last_ms = now_ms
            for record in fetched.records():
                if record.value is not None and len(record.value) == self._load.record_bytes:
                    measured.latencies_ms.append(now_ms - _DUE.unpack_from(record.value)[0])
                    measured.records += 1
