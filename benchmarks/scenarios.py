"""The loads, their measures, and their targets.

A load is a subcommand of the load generator with its arguments. A measure is one figure of each run of a load, with an optional
target: a bound on the figure, or on its ratio to Apache Kafka's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.load_tool import Measurement


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a figure, or on its ratio to Kafka's.

    Args:
        bound: the value to reach.
        at_least: whether ``bound`` is a minimum; otherwise it is a maximum.
        of_ratio: whether ``bound`` applies to the ratio odradek / Kafka; otherwise it applies to odradek's own figure.
    """

    bound: float
    at_least: bool
    of_ratio: bool = True

    def reached(self, own: float, ratio: float | None) -> bool | None:
        """Whether the target is met; None if the ratio is unknown because Kafka was not measured."""
        value = ratio if self.of_ratio else own
        if value is None:
            return None
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        """As the table shows it: ``ratio >= 1``."""
        return f"{'ratio ' if self.of_ratio else ''}{'>=' if self.at_least else '<='} {self.bound:.3g}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a load.

    Args:
        name: its name, with the unit.
        read: takes the figure from a run.
        target: its target, if any.
        higher_is_better: true for throughput, false for latency and CPU time.
        at_its_median: true for a figure that says how bad a bad moment is, whose best round only says which round had none.
    """

    name: str
    read: Callable[[Measurement], float]
    target: Target | None = None
    higher_is_better: bool = False
    at_its_median: bool = False

    def of(self, runs: Sequence[Measurement]) -> float:
        """The best of several runs, since other activity of the machine can only make a figure worse; or the median."""
        figures = [self.read(run) for run in runs]
        if self.at_its_median:
            return median(figures)
        return max(figures) if self.higher_is_better else min(figures)


@dataclass(frozen=True, slots=True)
class Load:
    """A load, run several times on each broker.

    Args:
        name: its name for ``--only``.
        title: its name in the table.
        subcommand: of the load generator.
        arguments: its constant flags.
        count: its size in a full run, in its own unit (records or requests; or its duration, in milliseconds).
        quick_count: its size with ``--quick``, and in a warm-up.
        count_flag: the flag that takes the count.
        measures: its figures.
        fill: for a reading load: the flags of the ``produce`` that fills its topic first.
        security: the flags by which the load generator speaks TLS; none in the clear.
    """

    name: str
    title: str
    subcommand: str
    arguments: tuple[str, ...]
    count: int
    quick_count: int
    measures: tuple[Measure, ...]
    count_flag: str = "-records"
    fill: tuple[str, ...] | None = None
    security: tuple[str, ...] = ()

    def arguments_for(self, count: int) -> tuple[str, ...]:
        """All arguments for a run of this size."""
        return (*self.security, *self.arguments, f"{self.count_flag}={count}")


AS_FAST = Target(1.0, at_least=True)
_AS_CHEAP = Target(1.0, at_least=False)
_TWICE = Target(2.0, at_least=True)

_THIRD = Target(1 / 3, at_least=False)

_CPU_PER_MILLION = Measure("server CPU s / M records", lambda run: run.server_cpu_s_per_million, _AS_CHEAP)
_CLIENT_CPU = Measure("client CPU s / M records", lambda run: run.client_cpu_s / run.records * 1e6)
_THROUGHPUT = (
    Measure("records/s", lambda run: run.records_per_s, AS_FAST, higher_is_better=True),
    _CPU_PER_MILLION,
    _CLIENT_CPU,
)
_LATENCY = (
    Measure("p50 ms", lambda run: run.p50_ms, _AS_CHEAP),
    Measure("p99 ms", lambda run: run.p99_ms, _AS_CHEAP, at_its_median=True),
    _CPU_PER_MILLION,
)
_REQUESTS = (
    Measure("requests/s", lambda run: run.requests / run.seconds, _TWICE, higher_is_better=True),
    Measure("records/s", lambda run: run.records_per_s, higher_is_better=True),
    Measure("server CPU us / request", lambda run: run.server_cpu_us_per_request, _AS_CHEAP),
)
_SMALL_REQUESTS = (
    Measure("requests/s", lambda run: run.requests / run.seconds, _TWICE, higher_is_better=True),
    Measure("server CPU us / request", lambda run: run.server_cpu_us_per_request, _THIRD),
)
_FLUSHED_REQUESTS = (Measure("requests/s", lambda run: run.requests / run.seconds, AS_FAST, higher_is_better=True),)
_HANDSHAKES = (
    Measure("handshakes/s", lambda run: run.requests / run.seconds, AS_FAST, higher_is_better=True),
    Measure("server CPU us / handshake", lambda run: run.server_cpu_us_per_request),
)
_STEPS = (
    Measure("join ms", lambda run: run.steps_ms["join"], _AS_CHEAP),
    Measure("sync ms", lambda run: run.steps_ms["sync"], _AS_CHEAP),
    Measure("one leaves ms", lambda run: run.steps_ms["leave"], _AS_CHEAP),
    Measure("all rejoin ms", lambda run: run.steps_ms["rejoin"], _AS_CHEAP),
    Measure("server CPU ms / group", lambda run: run.server_cpu_ms_per_group),
)
_HALF = Target(0.5, at_least=False)
_CONSUMER_STEPS = (
    Measure("all join ms", lambda run: run.steps_ms["start"], _AS_CHEAP, at_its_median=True),
    Measure("one leaves ms", lambda run: run.steps_ms["less"], _AS_CHEAP, at_its_median=True),
    Measure("partitions double ms", lambda run: run.steps_ms["grown"], _AS_CHEAP, at_its_median=True),
    Measure("of that, until all are served ms", lambda run: run.steps_ms["grow"], at_its_median=True),
    Measure("server CPU ms / group", lambda run: run.server_cpu_ms_per_group),
)
_CONSUMER_HEARTBEATS = (
    Measure("requests/s", lambda run: run.requests / run.seconds, _TWICE, higher_is_better=True),
    Measure("server CPU us / request", lambda run: run.server_cpu_us_per_request, _HALF),
    Measure("client CPU us / request", lambda run: run.client_cpu_s / run.requests * 1e6),
)
_TWENTY_TIMES = Target(20.0, at_least=True)
_FIVE_TIMES = Target(5.0, at_least=True)


def _transactions(producers: int, *, offsets: bool, as_many: Target) -> Load:
    """Transactions of one record, or of ten records and an offset commit; each producer has one open at a time."""
    title = f"{'10 records and an offset' if offsets else '1 record'} a transaction"
    return Load(
        name=f"txn-{'offsets-' if offsets else ''}{producers}",
        title=f"{title}, {producers} producer{'s' if producers > 1 else ''}",
        subcommand="transactions",
        arguments=(f"-producers={producers}", *(("-records=10", "-offsets") if offsets else ("-records=1",))),
        count=2_000,
        quick_count=1_000,
        measures=(
            Measure("transactions/s", lambda run: run.requests / run.seconds, as_many, higher_is_better=True),
            Measure("p50 of commit ms", lambda run: run.p50_ms),
            Measure("p99 of commit ms", lambda run: run.p99_ms, _AS_CHEAP, at_its_median=True),
            Measure("server CPU us / transaction", lambda run: run.server_cpu_us_per_request),
        ),
        count_flag="-milliseconds",
    )


def _consumer_group(members: int) -> tuple[Load, Load]:
    """A group of the consumer protocol: its steps, and heartbeats that change nothing, from 50 connections."""
    title = f"a consumer group of {members:,}"
    return (
        Load(f"consumer-group-{members}", title, "consumer-group", (), members, members // 2, _CONSUMER_STEPS, "-members"),
        Load(
            name=f"consumer-heartbeats-{members}",
            title=f"{title}, heartbeats",
            subcommand="consumer-heartbeats",
            arguments=(f"-members={members}", "-connections=50", "-window=4"),
            count=60_000,
            quick_count=20_000,
            measures=_CONSUMER_HEARTBEATS,
            count_flag="-requests",
        ),
    )


def _share_group(members: int, *, explicit: bool) -> Load:
    """A share group on batches of about 140 records. Acknowledgements are those of the next poll, or wait for their outcome."""
    how = "explicit" if explicit else "implicit"
    return Load(
        name=f"share-{how}-{members}",
        title=f"share group, {members} consumer{'s' if members > 1 else ''}, {how} acknowledgement",
        subcommand="share-consume",
        arguments=(f"-members={members}", *(("-explicit",) if explicit else ())),
        count=300_000,
        quick_count=100_000,
        measures=(_THROUGHPUT[0], Measure(_CPU_PER_MILLION.name, _CPU_PER_MILLION.read, _HALF), _CLIENT_CPU),
        fill=("-size=100", "-batch-bytes=16384"),
    )


def _small_batches(records: int, *, producers: int, requests: int) -> Load:
    """Produce requests of one small batch each, 256 in flight from eight connections, or 64 on one."""
    window = 32 if producers > 1 else 64
    return Load(
        name=f"batches-of-{records}-{producers}",
        title=f"batches of {records}, {producers} producer{'s' if producers > 1 else ''}",
        subcommand="small-batches",
        arguments=(f"-batch={records}", f"-connections={producers}", f"-window={window}"),
        count=requests,
        quick_count=8_000,
        measures=_REQUESTS,
        count_flag="-requests",
    )


def _flushed(
    name: str, title: str, subcommand: str, arguments: tuple[str, ...], count: int, measures: tuple[Measure, ...]
) -> Load:
    """A load on a topic that flushes every batch to disk before acknowledging it."""
    return Load(
        name=name,
        title=f"{title}, flush.messages=1",
        subcommand=subcommand,
        arguments=(*arguments, "-config=flush.messages=1"),
        count=count,
        quick_count=count // 4,
        measures=measures,
        count_flag="-requests" if subcommand == "small-batches" else "-records",
    )


LOADS: tuple[Load, ...] = (
    Load("produce-100", "produce 100 B", "produce", ("-size=100",), 4_000_000, 500_000, _THROUGHPUT),
    Load("produce-1k", "produce 1 KB", "produce", ("-size=1024",), 600_000, 150_000, _THROUGHPUT),
    Load(
        "produce-100-idempotent",
        "produce 100 B, idempotent",
        "produce",
        ("-size=100", "-idempotent"),
        4_000_000,
        500_000,
        _THROUGHPUT,
    ),
    Load("consume-100", "consume 100 B", "consume", (), 4_000_000, 500_000, _THROUGHPUT, fill=("-size=100",)),
    Load("consume-1k", "consume 1 KB", "consume", (), 600_000, 150_000, _THROUGHPUT, fill=("-size=1024",)),
    *(_share_group(members, explicit=explicit) for members in (1, 16) for explicit in (False, True)),
    _small_batches(1, producers=8, requests=60_000),
    _small_batches(1, producers=1, requests=40_000),
    _small_batches(10, producers=8, requests=60_000),
    _small_batches(10, producers=1, requests=40_000),
    _flushed("batches-of-1-8-flushed", "batches of 1, 8 producers", "small-batches", ("-batch=1",), 6_000, _FLUSHED_REQUESTS),
    _flushed("produce-1k-flushed", "produce 1 KB", "produce", ("-size=1024",), 120_000, _THROUGHPUT[:1]),
    _flushed("latency-flushed", "latency, one in flight", "latency", (), 600, _LATENCY[:2]),
    Load("latency", "latency, one in flight", "latency", (), 2_000, 500, _LATENCY),
    Load("latency-2000", "latency at 2,000 records/s", "latency", ("-rate=2000",), 8_000, 1_000, _LATENCY),
    # Sixteen producers before one: Kafka's warm-up with one producer has too few transactions to warm it.
    _transactions(16, offsets=False, as_many=_FIVE_TIMES),
    _transactions(16, offsets=True, as_many=_FIVE_TIMES),
    _transactions(1, offsets=False, as_many=_TWENTY_TIMES),
    _transactions(1, offsets=True, as_many=_TWENTY_TIMES),
    Load("heartbeats", "heartbeats, 8 groups", "heartbeats", (), 60_000, 20_000, _SMALL_REQUESTS, "-requests"),
    Load("commits", "commits, 8 groups", "commits", (), 60_000, 20_000, _SMALL_REQUESTS, "-requests"),
    Load("group-50", "a group of 50", "group-rebalance", ("-members=50",), 5, 2, _STEPS, "-groups"),
    Load("group-500", "a group of 500", "group-rebalance", ("-members=500",), 5, 2, _STEPS, "-groups"),
    *_consumer_group(500),
    *_consumer_group(1_000),
)

# On brokers with an SSL listener, and certificates of the curve P-256.
TLS_LOADS: tuple[Load, ...] = (
    Load("tls-produce-1k", "TLS: produce 1 KB", "produce", ("-size=1024",), 600_000, 150_000, _THROUGHPUT),
    Load("tls-consume-1k", "TLS: consume 1 KB", "consume", (), 600_000, 150_000, _THROUGHPUT, fill=("-size=1024",)),
    Load("tls-latency-2000", "TLS: latency at 2,000 records/s", "latency", ("-rate=2000",), 8_000, 1_000, _LATENCY),
    Load("tls-handshakes", "TLS: handshakes", "handshakes", (), 2_000, 500, _HANDSHAKES, "-requests"),
)

START = "start"
START_TITLE = "start-up"
START_TARGET = Target(1 / 8, at_least=False)
IDLE_PSS_TARGET = Target(48.0, at_least=False, of_ratio=False)

OFFSETS = "offsets-200k"
OFFSETS_TITLE = "200,000 offsets of 1,000 groups"
OFFSETS_TARGET = Target(1.0, at_least=False)

PARTITIONS = "partitions-10k"
PARTITIONS_TITLE = "10,000 partitions"
UNCLEAN = "unclean-5gb"
UNCLEAN_TITLE = "5 GB of log, killed"
RESTART_TARGET = Target(1.0, at_least=False)

COMPACTING = "latency-compacting"
COMPACTING_TITLE = "latency at 2,000 records/s"
RELOAD = "reload-compacted"
RELOAD_TITLE = "200,000 offsets, fifty times over"
LATENCY_TARGET = Target(1.0, at_least=False)

NAMES: tuple[str, ...] = (START, OFFSETS, PARTITIONS, UNCLEAN, RELOAD, COMPACTING, *(load.name for load in (*LOADS, *TLS_LOADS)))
# This load takes minutes, so it runs only if named.
USUAL: tuple[str, ...] = tuple(name for name in NAMES if name != RELOAD)
