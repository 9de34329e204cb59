"""Findings about groups: figures of rebalances, rebalance storms, flapping members, uneven assignments.

    kind             severity                           within the subject, a group
    rebalances       low                                a window
    rebalance_storm  high                               an episode
    flapping_member  high; medium if it rejoined as     client, an episode
                     the same static member
    uneven_assignment  medium                           the newest generation

A returning member is recognised by its group.instance.id. A dynamic member gets a new member id each time, and is recognised by
client id and host. Several members may share these. If as many members return as there were at once, they count as one
deployment.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from odradek.pipeline.findings.finding import HIGH, LOW, MEDIUM, Read, Thresholds, episodes, findings_of, seconds_between, windows
from odradek.pipeline.schema import CONSUMER, SHARE

_GONE = ("left", "expired", "gone")


def rebalance_figures(read: Read, thresholds: Thresholds) -> DataFrame:
    """Return rebalance figures for an operator's dashboard: one row for each group and window with a rebalance.

    ``sync_ms`` is the part of a rebalance that the log shows: from the end of the join phase to the assignment. ``failed``
    counts the generations without a record: their assignment never arrived. (The epoch of a consumer or share group may rise
    several times before there is an assignment.)
    """
    generations = read("group_generations").withColumn("before", f.lag("generation").over(_in_order()))
    missed = f.when(_is_modern(), 0).otherwise(f.greatest(f.col("generation") - f.col("before") - 1, f.lit(0)))
    figures = generations.groupBy("group", windows("at", thresholds.window_s).alias("window")).agg(
        f.count(f.lit(1)).alias("rebalances"),
        f.round(f.avg("sync_ms"), 1).alias("sync_ms_avg"),
        f.max("sync_ms").alias("sync_ms_max"),
        f.coalesce(f.sum(missed), f.lit(0)).alias("failed"),
        f.max("at").alias("last_at"),
    )
    changes = read("member_changes").groupBy("group", windows("at", thresholds.window_s).alias("window"))
    moved = changes.agg(
        _count_of("joined").alias("members_in"),
        _count_of(*_GONE).alias("members_out"),
        _count_of("bounced_static").alias("members_bounced"),
    )
    both = figures.join(moved, ["group", "window"], "left").fillna(0, ["members_in", "members_out", "members_bounced"])
    both = both.withColumns({"from_time": f.col("window.start"), "to_time": f.col("window.end")}).withColumn(
        "seconds_since_last", seconds_between(f.col("last_at"), f.col("to_time"))
    )
    of_time = ("rebalances", "sync_ms_avg", "sync_ms_max", "seconds_since_last", "failed")
    of_members = ("members_in", "members_out", "members_bounced")
    return findings_of(both, "rebalances", f.lit(LOW), subject="group", evidence=of_time + of_members)


def rebalance_storms(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find groups with ``storm_rebalances`` or more rebalances within ``storm_window_s``.

    A consumer or share group has a generation for each member that joins or leaves. Members that join one after another count
    as one rebalance, the start of an application. So do members that leave one after another.
    """
    came = f.signum(f.col("member_count") - f.lag("member_count", 1, 0).over(_in_order()))
    generations = read("group_generations").withColumn("came", came)
    goes_on = _is_modern() & (f.col("came") != 0) & (f.col("came") == f.lag("came").over(_in_order()))
    found = episodes(
        generations.withColumn("goes_on", f.coalesce(goes_on, f.lit(False))).where("NOT goes_on").select("group", "at"),
        ("group",),
        window_s=thresholds.storm_window_s,
        at_least=thresholds.storm_rebalances,
    )
    lasted = f.greatest(seconds_between(f.col("from_time"), f.col("to_time")), f.lit(1.0))
    found = found.withColumnRenamed("events", "rebalances").withColumn(
        "rebalances_a_minute", f.round(f.col("rebalances") * 60 / lasted, 1)
    )
    found = found.join(_most_changes(found, read("member_changes")), ["group", "episode"], "left")
    evidence = ("rebalances", "rebalances_a_minute", "most_changes_by", "changes")
    return findings_of(found, "rebalance_storm", f.lit(HIGH), subject="group", evidence=evidence)


def _most_changes(storms: DataFrame, changes: DataFrame) -> DataFrame:
    """Return ``group``, ``episode``, ``most_changes_by``, ``changes``: the client that joined and left most, and how often."""
    during = changes.join(f.broadcast(storms.select("group", "episode", "from_time", "to_time")), "group")
    during = during.where(f.col("at").between(f.col("from_time"), f.col("to_time")))
    clients = during.groupBy("group", "episode", "client_id").agg(f.count(f.lit(1)).alias("changes"))
    most = clients.groupBy("group", "episode").agg(f.max(f.struct("changes", "client_id")).alias("most"))
    return most.select(
        "group", "episode", f.col("most.client_id").alias("most_changes_by"), f.col("most.changes").alias("changes")
    )


def flapping_members(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find members that repeatedly leave and return."""
    by = ("group", "group_instance_id", "client_id", "client_host")
    # A static member may move to another host; a dynamic member is recognised by its host too.
    host = f.when(f.col("group_instance_id").isNull(), f.col("client_host"))
    changes = (
        read("member_changes")
        .withColumn("client_host", f.coalesce(host, f.lit("")))
        .fillna("", ["group_instance_id", "client_id"])
    )
    in_order = Window.partitionBy(*by).orderBy("record_partition", "record_offset", f.col("change") == "joined")
    until_now = in_order.rowsBetween(Window.unboundedPreceding, 0)
    step = f.when(f.col("change") == "joined", 1).when(f.col("change").isin(*_GONE), -1).otherwise(0)
    known = changes.withColumns(
        {"present": f.sum(step).over(until_now), "gone": f.sum(f.col("change").isin(*_GONE).cast("int")).over(until_now)}
    )
    most = known.groupBy(*by).agg(f.greatest(f.max("present"), f.lit(1)).alias("at_once"))
    came_back = (f.col("change") == "bounced_static") | ((f.col("change") == "joined") & (f.col("gone") > 0))
    returns = known.where(came_back)
    found = episodes(returns, by, window_s=thresholds.flap_window_s, at_least=thresholds.flap_returns)
    found = found.withColumnRenamed("events", "returns").join(most, list(by))
    found = found.where(f.col("returns") >= f.col("at_once") * thresholds.flap_returns)
    within = (
        returns.select(*by, "at", "change").join(found, list(by)).where(f.col("at").between(f.col("from_time"), f.col("to_time")))
    )
    told = within.groupBy(*by, "episode", "from_time", "to_time", "returns").agg(_count_of("joined").alias("rejoined"))
    severity = f.when(f.col("rejoined") > 0, HIGH).otherwise(MEDIUM)
    evidence = ("client_id", "client_host", "group_instance_id", "returns", "rejoined")
    return findings_of(told, "flapping_member", severity, subject="group", within=by[1:], evidence=evidence)


def uneven_assignments(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find groups whose newest generation of ``uneven_s`` or more gives one member far more partitions than another."""
    generations = read("group_generations")
    newest = generations.agg(f.max("at").alias("newest"))
    after = f.lead("at").over(_in_order())
    ended = generations.withColumn("to_time", after).crossJoin(f.broadcast(newest))
    ended = ended.withColumn("to_time", f.coalesce("to_time", f.greatest("newest", "at")))
    lasting = (f.col("member_count") > 1) & (f.col("state") != "Empty")
    lasting &= f.size("assignment") > 0
    lasting &= seconds_between(f.col("at"), f.col("to_time")) >= thresholds.uneven_s
    backwards = Window.partitionBy("group").orderBy(f.desc("partition"), f.desc("offset"))
    last = ended.where(lasting).withColumn("rank", f.row_number().over(backwards)).where("rank = 1")
    owned = last.select("group", "generation", "at", "to_time", "assignment", f.explode("members").alias("member_id"))
    mine = f.filter("assignment", lambda each: each.member_id == f.col("member_id"))
    count = f.aggregate(mine, f.lit(0), lambda total, each: total + f.size(each.partitions))
    spread = (
        owned.withColumn("partitions", count)
        .groupBy("group", "generation", "at", "to_time")
        .agg(
            f.count(f.lit(1)).alias("members"),
            f.sum("partitions").alias("partitions"),
            f.min("partitions").alias("fewest"),
            f.max("partitions").alias("most"),
            f.max_by("member_id", "partitions").alias("busiest"),
        )
    )
    uneven = (f.col("most") >= f.col("fewest") * thresholds.uneven_ratio) & (
        f.col("most") - f.col("fewest") >= thresholds.uneven_partitions
    )
    evidence = ("generation", "members", "partitions", "fewest", "most", "busiest")
    return findings_of(
        spread.where(uneven), "uneven_assignment", f.lit(MEDIUM), subject="group", from_time="at", evidence=evidence
    )


def _is_modern() -> Column:
    return f.coalesce(f.col("group_type").isin(CONSUMER, SHARE), f.lit(False))


def _in_order() -> WindowSpec:
    return Window.partitionBy("group").orderBy("partition", "offset")


def _count_of(*changes: str) -> Column:
    return f.count(f.when(f.col("change").isin(*changes), 1))
