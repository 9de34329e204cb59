"""Findings about transactions: hanging ones, slow ones, and an application's share of aborted ones.

    kind                 severity                      subject
    hanging_transaction  high                          a transactional id
    slow_transaction     medium                        a transactional id
    aborted_share        medium where it is above the  an application, in an hour
                         threshold, else low

An application is the common part of transactional ids: numbers and UUIDs at the end of an id name an instance.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from odradek.pipeline.findings.finding import HIGH, LOW, MEDIUM, Read, Thresholds, findings_of, newest, seconds_between, windows

_INSTANCE = r"([-_.](\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}))+$"
_HOUR_S = 3600.0
_WHO = ("producer_id", "producer_epoch", "timeout_ms", "partitions")


def application() -> Column:
    """Return ``payments`` for ``payments-0`` and for Kafka Streams' ``payments-UUID-1``; the whole id if it has no such end."""
    return f.regexp_replace("transactional_id", _INSTANCE, "")


def hanging_transactions(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find transactions that their producer did not end: aborted by the coordinator at their timeout, or still open.

    While one is open, read_committed consumers see no later record of the partitions it wrote to.
    """
    over = read("transactions").where(f.col("outcome") == "timed_out")
    ended = over.select(
        "transactional_id",
        f.col("start_at").alias("from_time"),
        f.col("completed_at").alias("to_time"),
        f.lit("aborted by the coordinator at its timeout").alias("what"),
        *_WHO,
    )
    opened = read("open_transactions").crossJoin(f.broadcast(newest(read)))
    age = seconds_between(f.col("start_at"), f.col("newest"))
    in_state = seconds_between(f.col("last_update_at"), f.col("newest"))
    past = f.col("timeout_ms") / 1000 + thresholds.open_grace_s
    hangs = f.when(f.col("status") == "Ongoing", age >= past).otherwise(in_state >= thresholds.open_grace_s)
    still = opened.where(hangs).select(
        "transactional_id",
        f.col("start_at").alias("from_time"),
        f.col("newest").alias("to_time"),
        f.when(f.col("status") == "Ongoing", "open past its timeout")
        .otherwise("decided, and its markers are not written")
        .alias("what"),
        *_WHO,
    )
    found = ended.unionByName(still).withColumns(
        {
            "open_s": seconds_between(f.col("from_time"), f.col("to_time")),
            "partition_count": f.size("partitions"),
            "partitions": f.slice("partitions", 1, 20),
        }
    )
    evidence = ("what", "producer_id", "producer_epoch", "open_s", "timeout_ms", "partition_count", "partitions")
    within = ("producer_id", "producer_epoch")
    return findings_of(found, "hanging_transaction", f.lit(HIGH), subject="transactional_id", within=within, evidence=evidence)


def slow_transactions(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find transactions that took long, and far longer than the median of their application. Hanging ones are excluded."""
    ended = read("transactions").withColumn("application", application())
    medians = ended.groupBy("application").agg(f.percentile_approx("total_ms", 0.5).alias("median_ms"))
    long = ended.where((f.col("total_ms") >= thresholds.slow_transaction_s * 1000) & (f.col("outcome") != "timed_out"))
    slow = long.join(medians, "application").where(f.col("total_ms") >= f.col("median_ms") * thresholds.slow_ratio)
    evidence = (
        "outcome",
        "total_ms",
        "ongoing_ms",
        "prepare_ms",
        "median_ms",
        "partition_count",
        "producer_id",
        "producer_epoch",
    )
    return findings_of(
        slow,
        "slow_transaction",
        f.lit(MEDIUM),
        subject="transactional_id",
        from_time="start_at",
        to_time="completed_at",
        within=("producer_id", "producer_epoch"),
        evidence=evidence,
    )


def aborted_shares(read: Read, thresholds: Thresholds) -> DataFrame:
    """Return the share of transactions that each application aborted in an hour, for whatever reason."""
    ended = read("transactions").withColumn("application", application())
    shares = ended.groupBy("application", windows("completed_at", _HOUR_S).alias("window")).agg(
        f.count(f.lit(1)).alias("transactions"),
        f.count(f.when(f.col("outcome") != "committed", 1)).alias("not_committed"),
        *(f.count(f.when(f.col("outcome") == outcome, 1)).alias(outcome) for outcome in ("aborted", "timed_out", "fenced")),
        f.countDistinct("transactional_id").alias("transactional_ids"),
    )
    shares = shares.withColumns(
        {
            "share": f.round(f.col("not_committed") / f.col("transactions"), 4),
            "from_time": f.col("window.start"),
            "to_time": f.col("window.end"),
        }
    )
    is_much = (f.col("share") >= thresholds.aborted_share) & (f.col("transactions") >= thresholds.aborted_transactions)
    severity = f.when(is_much, MEDIUM).otherwise(LOW)
    evidence = ("share", "transactions", "aborted", "timed_out", "fenced", "transactional_ids")
    return findings_of(shares, "aborted_share", severity, subject="application", evidence=evidence)
