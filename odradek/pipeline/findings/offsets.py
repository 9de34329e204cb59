"""Findings about offsets: stuck partitions, partitions that never committed, lag, backward commits.

    kind              severity                                      within the subject, a group
    stuck_partition   high; medium if it moved again since, low     topic, partition, the committed offset
                      if the group had no members
    lag               medium if large and not caught up soon,       a window
                      else low
    never_committed   high; medium once it was committed            topic, partition
    backward_commits  low                                           topic, a window

End offsets are known from samples only, so the times of stuck partitions and of lag are those of samples.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.findings.finding import HIGH, LOW, MEDIUM, Read, Thresholds, findings_of, newest, seconds_between, windows

_PARTITION = ("group", "topic", "partition")


def stuck_partitions(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find partitions whose committed offset stayed the same while their end offset grew.

    The times are those of samples: from the first sample at this offset to the last sample at which the end had grown.
    """
    in_order = Window.partitionBy(*_PARTITION).orderBy("sampled_at")
    before = f.lag("committed_offset").over(in_order)
    moved = before.isNull() | (before != f.col("committed_offset"))
    lag = read("lag").withColumn("run", f.sum(moved.cast("int")).over(in_order.rowsBetween(Window.unboundedPreceding, 0)))
    grew = f.col("end_offset") > f.coalesce(
        f.lag("end_offset").over(Window.partitionBy(*_PARTITION, "run").orderBy("sampled_at")), "end_offset"
    )
    runs = (
        lag.withColumn("grew", grew)
        .groupBy(*_PARTITION, "run")
        .agg(
            f.min("sampled_at").alias("from_time"),
            f.max(f.when(f.col("grew"), f.col("sampled_at"))).alias("to_time"),
            f.min("committed_offset").alias("committed_offset"),
            f.min("end_offset").alias("end_offset_then"),
            f.max("end_offset").alias("end_offset"),
            f.max("lag").alias("lag"),
        )
    )
    is_last = f.col("run") == f.max("run").over(Window.partitionBy(*_PARTITION))
    long_enough = seconds_between(f.col("from_time"), f.col("to_time")) >= thresholds.stuck_s
    stuck = runs.withColumn("moved_again", ~is_last).where(long_enough & (f.col("lag") > 0))
    stuck = _with_members(stuck, read("group_generations"), thresholds.stuck_s)
    severity = f.when(~f.col("had_members"), LOW).when(f.col("moved_again"), MEDIUM).otherwise(HIGH)
    evidence = ("topic", "partition", "committed_offset", "end_offset_then", "end_offset", "lag", "moved_again", "had_members")
    within = ("topic", "partition", "committed_offset")
    return findings_of(stuck, "stuck_partition", severity, subject="group", within=within, evidence=evidence)


def _with_members(stuck: DataFrame, generations: DataFrame, stuck_s: float) -> DataFrame:
    """Add ``had_members``: whether the group had members while it was stuck. Unknown counts as yes."""
    known_stuck = f.timestamp_micros(f.unix_micros("from_time") + round(stuck_s * 1e6))
    until = f.lead("at").over(Window.partitionBy("group").orderBy("partition", "offset"))
    known = generations.select(f.col("group").alias("of"), "at", until.alias("until"), "member_count")
    there = (f.col("at") <= known_stuck) & (f.col("until").isNull() | (f.col("until") > known_stuck))
    there &= f.col("group") == f.col("of")
    return stuck.join(known, there, "left").withColumn("had_members", f.coalesce(f.col("member_count") > 0, f.lit(True)))


def never_committed(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find partitions that a group never committed, although a member had them for long and their end grew meanwhile.

    No lag is known without a commit: a member that fails at the first record of a partition is seen only here.
    """
    commits = read("offset_commits").where("kind = 'first'")
    first = commits.groupBy(*_PARTITION).agg(f.min("at").alias("first_at"))
    elsewhere = first.groupBy("group").agg(f.count(f.lit(1)).alias("committed_partitions"))
    owned = _owned(read).join(first, list(_PARTITION), "left").crossJoin(f.broadcast(newest(read)))
    ended = owned.withColumn("ended", f.least("first_at", "until", "newest"))
    is_long = seconds_between(f.col("since"), f.col("ended")) >= thresholds.stuck_s
    unread = ended.where(is_long & (f.col("first_at").isNull() | (f.col("first_at") > f.col("since"))))
    samples = read("end_offsets").join(unread, ["topic", "partition"])
    samples = samples.where(f.col("sampled_at").between(f.col("since"), f.col("ended")))
    before = f.lag("end_offset").over(Window.partitionBy(*_PARTITION, "since").orderBy("sampled_at"))
    found = (
        samples.withColumn("grew", f.col("end_offset") > before)
        .groupBy(*_PARTITION, "since", "first_at", "member_id", "client_id")
        .agg(
            f.max(f.when(f.col("grew"), f.col("sampled_at"))).alias("to_time"),
            f.min("end_offset").alias("end_offset_then"),
            f.max("end_offset").alias("end_offset"),
        )
        .join(elsewhere, ["group"], "left")
        .fillna(0, ["committed_partitions"])
        .withColumnRenamed("since", "from_time")
        .withColumn("committed_later", f.col("first_at").isNotNull())
    )
    found = found.where(seconds_between(f.col("from_time"), f.col("to_time")) >= thresholds.stuck_s)
    severity = f.when(f.col("committed_later"), MEDIUM).otherwise(HIGH)
    of_partition = ("topic", "partition", "client_id", "member_id", "end_offset_then", "end_offset")
    return findings_of(
        found,
        "never_committed",
        severity,
        subject="group",
        within=("topic", "partition"),
        evidence=(*of_partition, "committed_later", "committed_partitions"),
    )


def _owned(read: Read) -> DataFrame:
    """Return each period in which a partition had owners, from ``since`` to ``until``, with its last owner.

    ``until`` is null if the partition still has an owner. A period that is open although nobody is assigned the partition now
    is left out: the log does not say when it ended.
    """
    in_order = Window.partitionBy(*_PARTITION).orderBy("record_partition", "record_offset")
    begins = f.lag("to_member").over(in_order).isNull() & f.col("to_member").isNotNull()
    spells = (
        read("partition_moves")
        .withColumn("spell", f.sum(begins.cast("int")).over(in_order.rowsBetween(Window.unboundedPreceding, 0)))
        .groupBy(*_PARTITION, "spell")
        .agg(
            f.min("at").alias("since"),
            f.max(f.when(f.col("to_member").isNull(), f.col("at"))).alias("until"),
            f.max_by("to_member", f.when(f.col("to_member").isNotNull(), f.col("record_offset"))).alias("member_id"),
            f.max_by("to_client_id", f.when(f.col("to_member").isNotNull(), f.col("record_offset"))).alias("client_id"),
        )
    )
    last = read("group_generations").groupBy("group").agg(f.max_by("assignment", f.struct("partition", "offset")).alias("last"))
    assigned = last.select("group", f.explode("last").alias("each"))
    assigned = assigned.select("group", "each.topic", f.explode("each.partitions").alias("partition"))
    is_assigned = assigned.distinct().withColumn("is_assigned", f.lit(True))
    spells = spells.join(is_assigned, list(_PARTITION), "left")
    return spells.where("until IS NOT NULL OR is_assigned").drop("spell", "is_assigned")


def lag_figures(read: Read, thresholds: Thresholds) -> DataFrame:
    """Return the lag of groups, one row for each group and window, and the time to catch up at the window's rate.

    Percentiles are over partitions and samples. A rate needs two samples in the window.
    """
    lag = read("lag").withColumn("window", windows("sampled_at", thresholds.window_s))
    partitions = lag.groupBy(*_PARTITION, "window").agg(
        f.max_by("lag", "sampled_at").alias("lag"),
        (f.max_by("committed_offset", "sampled_at") - f.min_by("committed_offset", "sampled_at")).alias("consumed"),
        (f.max("end_offset") - f.min("end_offset")).alias("produced"),
        f.min("sampled_at").alias("first_at"),
        f.max("sampled_at").alias("last_at"),
    )
    totals = partitions.groupBy("group", "window").agg(
        f.sum("lag").alias("lag"),
        f.sum("consumed").alias("consumed"),
        f.sum("produced").alias("produced"),
        f.min("first_at").alias("first_at"),
        f.max("last_at").alias("last_at"),
    )
    spread = lag.groupBy("group", "window").agg(
        f.percentile_approx("lag", [0.5, 0.95, 0.99]).alias("percentiles"), f.max("lag").alias("lag_max")
    )
    elapsed = seconds_between(f.col("first_at"), f.col("last_at"))
    elapsed = f.when(elapsed > 0, elapsed)
    gained = (f.col("consumed") - f.col("produced")) / elapsed
    figures = totals.join(spread, ["group", "window"]).withColumns(
        {
            "lag_p50": f.col("percentiles")[0],
            "lag_p95": f.col("percentiles")[1],
            "lag_p99": f.col("percentiles")[2],
            "consumed_per_s": f.round(f.col("consumed") / elapsed, 2),
            "produced_per_s": f.round(f.col("produced") / elapsed, 2),
            "catch_up_s": f.when(f.col("lag") == 0, 0.0).when(gained > 0, f.round(f.col("lag") / gained, 1)),
            "from_time": f.col("window.start"),
            "to_time": f.col("window.end"),
        }
    )
    is_trouble = (f.col("lag") >= thresholds.lag_records) & (
        f.col("catch_up_s").isNull() | (f.col("catch_up_s") > thresholds.catch_up_s)
    )
    # A single sample shows no trend.
    severity = f.when(is_trouble & elapsed.isNotNull(), MEDIUM).otherwise(LOW)
    evidence = ("lag", "lag_p50", "lag_p95", "lag_p99", "lag_max", "consumed_per_s", "produced_per_s", "catch_up_s")
    return findings_of(figures, "lag", severity, subject="group", evidence=evidence)


def backward_commits(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find commits below the committed offset: the records between the two are processed again."""
    backward = read("offset_commits").where(f.col("kind") == "backward")
    found = backward.groupBy("group", "topic", windows("at", thresholds.window_s).alias("window")).agg(
        f.count(f.lit(1)).alias("commits"),
        f.countDistinct("partition").alias("partitions"),
        (-f.min("delta")).alias("records_back_at_most"),
    )
    found = found.withColumns({"from_time": f.col("window.start"), "to_time": f.col("window.end")})
    evidence = ("topic", "commits", "partitions", "records_back_at_most")
    return findings_of(found, "backward_commits", f.lit(LOW), subject="group", within=("topic",), evidence=evidence)
