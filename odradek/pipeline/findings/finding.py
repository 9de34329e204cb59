"""A finding: the limits that make one, its row, and helpers of the detectors: tables by name, seconds, episodes out of events.

Limits also set the severity. Names that end in ``_s`` are seconds. Each limit can be set by its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from odradek.pipeline.errors import PipelineError
from odradek.pipeline.schema import FINDINGS_DIR, STRING, TIME, read_parquet, struct


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The defaults suit a cluster whose groups are deployed a few times a day.

    Attributes:
        window_s: length of the windows of the figures (``rebalances``, ``lag``); windows start at its multiples.
        storm_rebalances: the number of a group's rebalances within ``storm_window_s`` that make a storm.
        storm_window_s: see ``storm_rebalances``.
        flap_returns: the number of a member's returns within ``flap_window_s`` that make it flap.
        flap_window_s: see ``flap_returns``.
        stuck_s: a partition is stuck if its committed offset stayed the same for this long while its end offset grew; and it is
            one that never committed if it was assigned for this long, without any commit, while its end offset grew.
        lag_records: lag below this is no trouble, however slowly it shrinks.
        catch_up_s: lag that would be caught up within this time is no trouble.
        uneven_ratio: an assignment is uneven if one member has this many times the partitions of another,
        uneven_partitions: at least this many more of them,
        uneven_s: and for this long; during a rebalance an uneven assignment is normal.
        slow_transaction_s: a transaction is slow if it took this long,
        slow_ratio: and this many times the median of its application.
        open_grace_s: a transaction is hanging if it is open this long past its timeout, or in a prepare state this long.
        aborted_share: an application that aborts this share of its transactions in an hour has severity medium,
        aborted_transactions: if it had this many transactions in the hour.
        poison_deliveries: a record of a share group is poison if it failed this many times.
        expired_locks: the number of times that a share partition's records come back as late as locks expire, within
            ``lock_window_s``, from which they are held,
        lock_window_s: see ``expired_locks``,
        lock_s: the shortest duration of a lock, Kafka's ``group.share.min.record.lock.duration.ms``,
        longest_lock_s: the longest one, and a second for the expiry to be written.
        task_returns: a task of a streams group moves back and forth if it returned so many times, within
        task_window_s: this time, to the process that it had come from.
    """

    window_s: float = 300.0
    storm_rebalances: float = 10.0
    storm_window_s: float = 300.0
    flap_returns: float = 3.0
    flap_window_s: float = 900.0
    stuck_s: float = 300.0
    lag_records: float = 10_000.0
    catch_up_s: float = 3600.0
    uneven_ratio: float = 2.0
    uneven_partitions: float = 2.0
    uneven_s: float = 10.0
    slow_transaction_s: float = 10.0
    slow_ratio: float = 5.0
    open_grace_s: float = 30.0
    aborted_share: float = 0.2
    aborted_transactions: float = 10.0
    poison_deliveries: float = 3.0
    expired_locks: float = 3.0
    lock_window_s: float = 900.0
    lock_s: float = 15.0
    longest_lock_s: float = 61.0
    task_returns: float = 3.0
    task_window_s: float = 900.0

    def with_settings(self, settings: Mapping[str, str]) -> Self:
        """Return the thresholds with these settings. Raises PipelineError for an unknown name or a malformed number."""
        known = {field.name for field in fields(self)}
        changed = {}
        for name, text in settings.items():
            if name not in known:
                raise PipelineError(f"there is no threshold {name!r}; thresholds: {', '.join(sorted(known))}")
            try:
                changed[name] = float(text)
            except ValueError as failure:
                raise PipelineError(f"the threshold {name} is {text!r}: give a number") from failure
            if not changed[name] > 0:
                raise PipelineError(f"the threshold {name} is {text}: give a number above 0")
        return replace(self, **changed)


HIGH, MEDIUM, LOW = "high", "medium", "low"

FINDING = struct(id=STRING, kind=STRING, severity=STRING, subject=STRING, from_time=TIME, to_time=TIME, evidence=STRING)
"""``id`` is a hash of kind, subject, the columns within the subject, and ``from_time``: the same trouble keeps its id.
``subject`` is a group, a transactional id or an application; ``evidence`` is a JSON object whose fields depend on the kind."""

Read = Callable[[str], DataFrame]
"""Return a table of the warehouse by its name."""


def findings_of(
    rows: DataFrame,
    kind: str,
    severity: Column,
    *,
    subject: str,
    from_time: str = "from_time",
    to_time: str = "to_time",
    within: tuple[str, ...] = (),
    evidence: tuple[str, ...],
) -> DataFrame:
    """Return rows as ``FINDING``. ``subject``, the times, and names in ``within`` and ``evidence`` are columns of ``rows``."""
    named = [f.lit(kind), f.col(subject), *(f.col(name).cast("string") for name in within)]
    identity = f.concat_ws("\0", *named, f.unix_micros(from_time).cast("string"))
    return rows.select(
        f.substring(f.sha2(identity, 256), 1, 24).alias("id"),
        f.lit(kind).alias("kind"),
        severity.alias("severity"),
        f.col(subject).alias("subject"),
        f.col(from_time).alias("from_time"),
        f.col(to_time).alias("to_time"),
        f.to_json(f.struct(*evidence)).alias("evidence"),
    )


def seconds(time: str) -> Column:
    """Return a timestamp as seconds since the epoch, a double."""
    return f.unix_micros(time) / f.lit(1e6)


def seconds_between(earlier: Column, later: Column) -> Column:
    """Return the duration, rounded to milliseconds."""
    return f.round((f.unix_micros(later) - f.unix_micros(earlier)) / f.lit(1e6), 3)


def windows(time: str, length_s: float) -> Column:
    """Return the window that contains a time. Windows start at multiples of their length."""
    return f.window(time, f"{round(length_s * 1e6)} microseconds")


def episodes(events: DataFrame, by: tuple[str, ...], *, window_s: float, at_least: float) -> DataFrame:
    """Return episodes: ``at_least`` events (``by``, ``at``) within ``window_s`` form one, and overlapping ones are merged.

    Columns: ``by``, ``episode``, ``from_time`` and ``to_time`` of the first and last event, ``events`` (their number). Events
    at the same time count together. The only shuffle is by ``by``.
    """
    micros = round(window_s * 1e6)
    in_order = Window.partitionBy(*by).orderBy("micros")
    trailing = in_order.rangeBetween(-micros, 0)
    so_far = in_order.rangeBetween(Window.unboundedPreceding, 0)
    counted = events.withColumn("micros", f.unix_micros("at")).withColumns(
        {
            "within": f.count(f.lit(1)).over(trailing),
            "first": f.min("micros").over(trailing),
            "so_far": f.count(f.lit(1)).over(so_far),
        }
    )
    full = counted.where(f.col("within") >= at_least)
    is_apart = f.col("first") > f.lag("micros", 1).over(in_order)
    numbered = full.withColumn("is_apart", f.coalesce(is_apart, f.lit(True)).cast("int")).withColumn(
        "episode", f.sum("is_apart").over(in_order.rowsBetween(Window.unboundedPreceding, 0))
    )
    return numbered.groupBy(*by, "episode").agg(
        f.timestamp_micros(f.min("first")).alias("from_time"),
        f.timestamp_micros(f.max("micros")).alias("to_time"),
        (f.max("so_far") - f.min(f.col("so_far") - f.col("within"))).alias("events"),
    )


def newest(read: Read) -> DataFrame:
    """Return one row, ``newest``: the newest time in the tables, used as "now"."""
    times = (
        read("group_generations").select("at"),
        read("transactions").select(f.col("completed_at").alias("at")),
        read("open_transactions").select(f.col("last_update_at").alias("at")),
        read("lag").select(f.col("sampled_at").alias("at")),
        read("share_deliveries").select("at"),
        read("task_moves").select("at"),
    )
    return reduce(DataFrame.unionByName, times).agg(f.max("at").alias("newest"))


def read_findings(spark: SparkSession, warehouse: str) -> DataFrame:
    """Return the newest findings, as ``FINDING``; no rows before the first pass."""
    return read_parquet(spark, f"{warehouse}/{FINDINGS_DIR}", FINDING)
