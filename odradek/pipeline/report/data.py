"""The data of the report, out of the warehouse. Every query aggregates in Spark and bounds the number of its rows.

With the bounds the page's size does not grow with the length of the history. Groups are chosen by their findings. Times are cut
into buckets. Of lanes, segments and moves the newest or the busiest are taken. ``Shown.of`` is the number of rows without the
bound.
"""

from dataclasses import dataclass
from functools import reduce

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.findings import HIGH, MEDIUM
from odradek.pipeline.findings.finding import Read
from odradek.pipeline.findings.transactions import application

GROUPS = 12
GENERATIONS = 300
EXPLAINED = 10
EXPLAINED_MOVES = 12
SEGMENTS = 1500
LANES = 30
MOVES = 400
LINES = 8
BUCKETS = 200
APPLICATIONS = 30
SHARE_PARTITIONS = 30
TASKS = 30
POINTS = 2000
FINDINGS = 300
LOW_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Span:
    """The span between the first and the last time in the tables, UTC without a zone."""

    first: pd.Timestamp
    last: pd.Timestamp

    def end(self) -> Column:
        """Return the end of the span."""
        return f.timestamp_micros(f.lit(self.last.value // 1000))

    def bucket(self, time: str) -> Column:
        """Return the start of the bucket that contains a time; the span has ``BUCKETS`` buckets."""
        first_us = self.first.value // 1000
        width_us = max(1, (self.last.value // 1000 - first_us) // BUCKETS)
        return f.timestamp_micros(f.lit(first_us) + f.floor((f.unix_micros(time) - first_us) / width_us) * width_us)


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows, and the number of rows without the bound."""

    rows: pd.DataFrame
    of: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Numbers of rows in the tables."""

    groups: int
    generations: int
    commits: int
    transactions: int


def span_and_counts(read: Read) -> tuple[Span, Counted]:
    """Return the span and the counts over all tables. The span of empty tables has no length."""
    tables = {
        "group_generations": "at",
        "transactions": "completed_at",
        "lag": "sampled_at",
        "offset_commits": "at",
        "share_deliveries": "at",
        "task_moves": "at",
    }
    found = {}
    for name, time in tables.items():
        micros = f.unix_micros(time)
        figures = read(name).agg(f.count(f.lit(1)).alias("count"), f.min(micros).alias("first"), f.max(micros).alias("last"))
        found[name] = figures.collect()[0]
    of_groups = (read(name).select("group") for name in ("group_generations", "offset_commits", "share_deliveries", "task_moves"))
    groups = reduce(DataFrame.union, of_groups).distinct().count()
    times = [time for row in found.values() for time in (row["first"], row["last"]) if time is not None]
    counted = Counted(
        groups=groups,
        generations=found["group_generations"]["count"],
        commits=found["offset_commits"]["count"],
        transactions=found["transactions"]["count"],
    )
    first, last = min(times, default=0), max(times, default=0)
    return Span(pd.Timestamp(first, unit="us"), pd.Timestamp(last, unit="us")), counted


def findings(found: DataFrame) -> tuple[Shown, Shown]:
    """Return the findings of high and medium severity, and those of low: the gravest first, then the newest."""
    is_low = ~f.col("severity").isin(HIGH, MEDIUM)
    gravity = f.when(f.col("severity") == HIGH, 0).otherwise(1)
    newest_first = (gravity, f.desc("from_time"), "kind", "subject", "id")

    def take(rows: DataFrame, limit: int) -> Shown:
        return Shown(rows.orderBy(*newest_first).limit(limit).toPandas(), rows.count())

    return take(found.where(~is_low), FINDINGS), take(found.where(is_low), LOW_FINDINGS)


def groups(read: Read, found: DataFrame) -> Shown:
    """Return ``group``, ``generations``, ``members`` (now), ``high``, ``medium``: gravest findings first, then the busiest."""
    grave = found.groupBy(f.col("subject").alias("group")).agg(
        f.count(f.when(f.col("severity") == HIGH, 1)).alias("high"),
        f.count(f.when(f.col("severity") == MEDIUM, 1)).alias("medium"),
    )
    known = (
        read("group_generations")
        .groupBy("group")
        .agg(f.count(f.lit(1)).alias("generations"), f.max_by("member_count", f.struct("partition", "offset")).alias("members"))
    )
    behind = read("lag").groupBy("group").agg(f.max("lag").alias("lag_max"))
    every = known.join(behind, "group", "full").join(grave, "group", "left").fillna(0)
    worst_first = (f.desc("high"), f.desc("medium"), f.desc("generations"), f.desc("lag_max"), "group")
    return Shown(every.orderBy(*worst_first).limit(GROUPS).toPandas(), every.count())


def generations(read: Read, shown: list[str], span: Span) -> DataFrame:
    """Return the newest generations of the shown groups, with ``until``, the time of the next generation."""
    in_order = Window.partitionBy("group").orderBy("partition", "offset")
    newest_first = Window.partitionBy("group").orderBy(f.desc("partition"), f.desc("offset"))
    until = f.coalesce(f.lead("at").over(in_order), f.greatest(span.end(), "at"))
    rows = read("group_generations").where(f.col("group").isin(shown))
    rows = rows.withColumns({"until": until, "age": f.row_number().over(newest_first)})
    return rows.where(f.col("age") <= GENERATIONS)


def ticks(read: Read, newest: DataFrame) -> pd.DataFrame:
    """Return ``group``, ``at``, ``generation``, ``reason``, ``member_count``, ``why``, ``moved``: a row for each generation.

    The newest generations of consumer groups have ``why``, the changes before them, and ``moved``, the partitions that went to
    another member.
    """
    changed_hands = f.col("from_member").isNotNull() & f.col("to_member").isNotNull()
    kept = f.when(f.col("kept_ms").isNotNull(), f.format_string(", which gave it up after %,d ms", "kept_ms"))
    where = f.concat_ws("-", "topic", "partition")
    from_whom, to_whom = f.coalesce("from_client_id", "from_member"), f.coalesce("to_client_id", "to_member")
    move = f.concat(where, f.lit(" to "), to_whom, f.lit(" from "), from_whom, f.coalesce(kept, f.lit("")))
    moved = read("partition_moves").where(changed_hands).groupBy("group", "generation").agg(f.collect_list(move).alias("moved"))
    moved = moved.withColumn("moved", f.concat_ws("; ", f.slice(f.array_sort("moved"), 1, EXPLAINED_MOVES)))
    is_explained = f.col("why").isNotNull() & (f.col("age") <= EXPLAINED)
    rows = newest.join(moved, ["group", "generation"], "left")
    rows = rows.withColumns({name: f.when(is_explained, f.col(name)) for name in ("moved", "why")})
    return rows.select("group", "at", "generation", "reason", "member_count", "why", "moved").orderBy("group", "at").toPandas()


def segments(read: Read, newest: DataFrame) -> pd.DataFrame:
    """Return ``group``, ``lane``, ``at``, ``until``, ``first``, ``last`` (generation), ``partitions``: bars of members' lanes.

    A lane is a member by the name that its operator gave it: group.instance.id or client id, numbered if several members share
    it.
    """
    mine = f.filter("assignment", lambda each: each.member_id == f.col("member_id"))
    count = f.aggregate(mine, f.lit(0), lambda total, each: total + f.size(each.partitions))
    present = newest.select(
        "group", "generation", "at", "until", "partition", "offset", "assignment", f.explode("members").alias("member_id")
    ).withColumn("partitions", count)
    named = _names(read).withColumnRenamed("of", "group")
    same_name = Window.partitionBy("group", "generation", "offset", "name").orderBy("member_id")
    present = present.join(named, ["group", "member_id"], "left").withColumn("name", f.coalesce("name", "member_id"))
    number = f.row_number().over(same_name)
    present = present.withColumn("lane", f.when(number == 1, f.col("name")).otherwise(f.concat("name", f.lit(" #"), number)))
    lane = Window.partitionBy("group", "lane").orderBy("partition", "offset")
    goes_on = (f.lag("until").over(lane) == f.col("at")) & (f.lag("partitions").over(lane) == f.col("partitions"))
    begins = (~f.coalesce(goes_on, f.lit(False))).cast("int")
    numbered = present.withColumn("begins", begins).withColumn("run", f.sum("begins").over(lane))
    merged = numbered.groupBy("group", "lane", "run", "partitions").agg(
        f.min("at").alias("at"),
        f.max("until").alias("until"),
        f.min("generation").alias("first"),
        f.max("generation").alias("last"),
    )
    return _busiest(merged, "lane", "at", LANES, SEGMENTS).drop("run").toPandas()


def moves(read: Read, shown: list[str]) -> pd.DataFrame:
    """Return ``group``, ``at``, ``lane`` (topic and partition), ``moved`` (from and to), ``rebalance_kind``, ``generation``.

    Left out: first owners in a group's first generation, and last owners when the group became empty; the members' lanes show
    these.
    """
    changed_hands = f.col("from_member").isNotNull() & f.col("to_member").isNotNull()
    rows = read("partition_moves").where(f.col("group").isin(shown) & changed_hands)
    whom = f.coalesce("from_client_id", "from_member"), f.coalesce("to_client_id", "to_member")
    told = rows.select(
        "group",
        "at",
        f.concat_ws("-", "topic", "partition").alias("lane"),
        f.concat_ws(" → ", *whom).alias("moved"),
        "rebalance_kind",
        "generation",
    )
    return _busiest(told, "lane", "at", LANES, MOVES).toPandas()


def lag_of_partitions(read: Read, shown: list[str], span: Span) -> pd.DataFrame:
    """Return ``group``, ``line`` (topic and partition), ``at``, ``lag``: the partitions of each group with the largest lag."""
    rows = read("lag").where(f.col("group").isin(shown)).withColumn("line", f.concat_ws("-", "topic", "partition"))
    return _farthest_behind(rows, ("group", "line"), "group", span)


def lag_of_groups(read: Read, span: Span) -> pd.DataFrame:
    """Return ``line`` (the group), ``at``, ``lag``: the sum over each group's partitions, for the groups farthest behind."""
    rows = read("lag").groupBy(f.col("group").alias("line"), "sampled_at").agg(f.sum("lag").alias("lag"))
    return _farthest_behind(rows, ("line",), None, span)


def transactions(read: Read, span: Span) -> pd.DataFrame:
    """Return ``transactional_id``, ``application``, ``at``, ``total_ms``, ``outcome``, ``alike``.

    A row is the slowest of the ``alike`` transactions with the same application, outcome and bucket.
    """
    rows = read("transactions").withColumns({"application": application(), "bucket": span.bucket("completed_at")})
    slowest = rows.groupBy("application", "outcome", "bucket").agg(
        f.max_by("transactional_id", "total_ms").alias("transactional_id"),
        f.max_by("completed_at", "total_ms").alias("at"),
        f.max("total_ms").alias("total_ms"),
        f.count(f.lit(1)).alias("alike"),
    )
    return slowest.orderBy(f.desc("total_ms"), "at").limit(POINTS).drop("bucket").toPandas()


def applications(read: Read) -> Shown:
    """Return counts and durations in ms of each application: ``transactional_ids``, ``transactions``, ``aborted`` and so on."""
    rows = (
        read("transactions")
        .groupBy(application().alias("application"))
        .agg(
            f.countDistinct("transactional_id").alias("transactional_ids"),
            f.count(f.lit(1)).alias("transactions"),
            *(f.count(f.when(f.col("outcome") == outcome, 1)).alias(outcome) for outcome in ("aborted", "timed_out", "fenced")),
            f.percentile_approx("total_ms", 0.5).alias("p50_ms"),
            f.percentile_approx("total_ms", 0.99).alias("p99_ms"),
            f.max("total_ms").alias("max_ms"),
        )
    )
    return Shown(rows.orderBy(f.desc("transactions"), "application").limit(APPLICATIONS).toPandas(), rows.count())


def share_partitions(read: Read) -> Shown:
    """Return records of each share partition: ``accepted``, ``returned``, ``archived``, and the most ``deliveries`` of one.

    Partitions with archived records come first, then those with many returns. ``start_offset`` is null if it is not known.
    """
    key = ("group", "topic", "partition")
    deliveries = read("share_deliveries")
    ended = (f.col("change") != "archiving") | f.col("change").isNull()
    counted = (
        deliveries.where(ended)
        .groupBy(*key)
        .agg(
            *(
                f.coalesce(f.sum(f.when(f.col("change") == change, f.col("records"))), f.lit(0)).alias(change)
                for change in ("accepted", "returned", "archived")
            ),
            f.max("delivery_count").alias("deliveries"),
        )
    )
    now = read("share_partitions_now").select(*key, "start_offset")
    rows = counted.join(now, list(key), "left").withColumn("where", f.concat_ws("-", "topic", "partition"))
    worst_first = (f.desc("archived"), f.desc("returned"), f.desc("accepted"), "group", "where")
    shown = rows.orderBy(*worst_first).limit(SHARE_PARTITIONS).withColumn("start_offset", f.col("start_offset").cast("string"))
    return Shown(shown.fillna("", ["start_offset"]).toPandas(), rows.count())


def tasks(read: Read) -> Shown:
    """Return the moves of each streams group's tasks: ``moves``, and those ``between`` processes, the most often moved first.

    ``member`` is the client that has the task now, ``standbys`` is the number of members with a standby.
    """
    key = ("group", "subtopology", "partition")
    is_between = f.col("from_process") != f.col("to_process")
    moved = (
        read("task_moves")
        .groupBy(*key)
        .agg(
            f.count("from_member").alias("moves"),
            f.count(f.when(is_between, 1)).alias("between"),
            f.count(f.when(is_between & f.col("had_standby"), 1)).alias("with_standby"),
            f.coalesce(f.max("away_ms"), f.lit(0)).alias("away_ms_max"),
        )
    )
    member = f.coalesce("client_id", "member_id").alias("member")
    now = read("tasks_now").select(*key, member, f.size("standby").alias("standbys"))
    rows = moved.join(now, list(key), "left").fillna("", ["member"]).fillna(0, ["standbys"])
    rows = rows.withColumn("task", f.concat_ws("_", "subtopology", "partition"))
    return Shown(rows.orderBy(f.desc("between"), f.desc("moves"), *key).limit(TASKS).toPandas(), rows.count())


def _names(read: Read) -> DataFrame:
    changes = read("member_changes").where(f.col("change").isin("joined", "bounced_static"))
    name = f.coalesce("group_instance_id", f.when(f.col("client_id") != "", f.col("client_id")), "member_id")
    return changes.groupBy(f.col("group").alias("of"), "member_id").agg(f.max(name).alias("name"))


def _busiest(rows: DataFrame, lane: str, time: str, lanes: int, at_most: int) -> DataFrame:
    """Return the lanes with the most rows in each group, and the newest rows of these lanes."""
    of_lane = rows.groupBy("group", lane).agg(f.count(f.lit(1)).alias("rows"))
    rank = f.row_number().over(Window.partitionBy("group").orderBy(f.desc("rows"), lane))
    kept = of_lane.withColumn("rank", rank).where(f.col("rank") <= lanes).select("group", lane)
    newest = f.row_number().over(Window.partitionBy("group").orderBy(f.desc(time), lane))
    return rows.join(f.broadcast(kept), ["group", lane]).withColumn("age", newest).where(f.col("age") <= at_most).drop("age")


def _farthest_behind(rows: DataFrame, by: tuple[str, ...], within: str | None, span: Span) -> pd.DataFrame:
    most = rows.groupBy(*by).agg(f.max("lag").alias("most"))
    scope = Window.partitionBy(within) if within else Window.partitionBy(f.lit(0))
    kept = most.withColumn("rank", f.row_number().over(scope.orderBy(f.desc("most"), "line"))).where(f.col("rank") <= LINES)
    drawn = (
        rows.join(f.broadcast(kept), list(by))
        .groupBy(*by, "rank", span.bucket("sampled_at").alias("at"))
        .agg(f.max("lag").alias("lag"))
    )
    return drawn.orderBy("rank", "at").toPandas()
