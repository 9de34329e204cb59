"""Findings about share groups: records that fail again and again, and records that are held until their locks expire.

    kind           severity                                   within the subject, a group
    poison_record  high if it was archived; medium if it      topic, partition, a window or the first return
                   is to be delivered again
    held_record    medium                                     topic, partition, an episode

The log does not tell a release from an acquisition lock that expired. But a lock has one duration, which Kafka keeps between two
bounds. A record that is acquired as soon as it is available, and comes back with its lock, comes back after that duration.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from odradek.pipeline.findings.finding import HIGH, MEDIUM, Read, Thresholds, episodes, findings_of, windows

_PARTITION = ("group", "topic", "partition")
_OFFSETS_NAMED = 20


def archived_records(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find records that were archived after ``poison_deliveries`` or more: nobody has processed them."""
    ended = read("share_deliveries").where(f.col("change").isin("archiving", "archived"))
    # Records on the way to the dead-letter queue are archived once more when they are there.
    ended = ended.where((f.col("previous_state") == "Available") & (f.col("delivery_count") >= thresholds.poison_deliveries))
    found = ended.groupBy(*_PARTITION, windows("at", thresholds.window_s).alias("window")).agg(
        f.sum("records").alias("records"),
        f.array_sort(f.collect_set("first_offset")).alias("offsets"),
        f.max("delivery_count").alias("deliveries"),
        f.coalesce(f.sum(f.when(f.col("change") == "archiving", f.col("records"))), f.lit(0)).alias("to_dead_letter_queue"),
        f.min(f.coalesce("first_returned_at", "at")).alias("first_returned_at"),
    )
    found = found.withColumns(
        {
            "what": f.lit("archived"),
            "from_time": f.col("window.start"),
            "to_time": f.col("window.end"),
            "offsets": f.slice("offsets", 1, _OFFSETS_NAMED),
        }
    )
    evidence = ("what", "topic", "partition", "records", "offsets", "deliveries", "to_dead_letter_queue", "first_returned_at")
    return findings_of(found, "poison_record", f.lit(HIGH), subject="group", within=("topic", "partition"), evidence=evidence)


def redelivered_records(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find records that are available once more after ``poison_deliveries`` or more deliveries."""
    batches = read("share_partitions_now").select(*_PARTITION, f.explode("batches").alias("batch")).select(*_PARTITION, "batch.*")
    is_poison = (f.col("state") == "Available") & (f.col("delivery_count") >= thresholds.poison_deliveries)
    known = batches.where(is_poison & f.col("since").isNotNull())
    found = known.groupBy(*_PARTITION).agg(
        f.sum(f.col("last_offset") - f.col("first_offset") + 1).alias("records"),
        f.array_sort(f.collect_set("first_offset")).alias("offsets"),
        f.max("delivery_count").alias("deliveries"),
        f.min("first_returned_at").alias("from_time"),
        f.max("since").alias("to_time"),
    )
    found = found.withColumns({"what": f.lit("delivered again"), "offsets": f.slice("offsets", 1, _OFFSETS_NAMED)})
    evidence = ("what", "topic", "partition", "records", "offsets", "deliveries")
    return findings_of(found, "poison_record", f.lit(MEDIUM), subject="group", within=("topic", "partition"), evidence=evidence)


def held_records(read: Read, thresholds: Thresholds) -> DataFrame:
    """Find share partitions to which records come back after a time that a lock may have, ``expired_locks`` times or more."""
    held_s = f.col("held_ms") / 1000
    returned = read("share_deliveries").where(f.col("change") == "returned")
    late = returned.where(held_s.between(thresholds.lock_s, thresholds.longest_lock_s))
    # Records that come back together had one lock.
    times = late.select(*_PARTITION, "at").distinct()
    found = episodes(times, _PARTITION, window_s=thresholds.lock_window_s, at_least=thresholds.expired_locks)
    found = found.withColumnRenamed("events", "returns")
    during = late.select(*_PARTITION, "at", "held_ms", "records", "first_offset").join(found, list(_PARTITION))
    during = during.where(f.col("at").between(f.col("from_time"), f.col("to_time")))
    told = during.groupBy(*_PARTITION, "episode", "from_time", "to_time", "returns").agg(
        f.sum("records").alias("records"),
        f.slice(f.array_sort(f.collect_set("first_offset")), 1, _OFFSETS_NAMED).alias("offsets"),
        f.percentile_approx("held_ms", 0.5).alias("held_ms"),
        f.min("held_ms").alias("held_ms_min"),
        f.max("held_ms").alias("held_ms_max"),
    )
    told = told.join(_assigned(read), list(_PARTITION), "left")
    evidence = ("topic", "partition", "returns", "records", "offsets", "held_ms", "held_ms_min", "held_ms_max", "clients")
    return findings_of(told, "held_record", f.lit(MEDIUM), subject="group", within=("topic", "partition"), evidence=evidence)


def _assigned(read: Read) -> DataFrame:
    """Return the partitions of share groups with ``clients``, the client ids of the members that have them now."""
    members = read("groups_now").where("group_type = 'Share'").select("group", f.explode("members").alias("member"))
    assigned = members.select("group", "member.client_id", f.explode("member.assignment").alias("each"))
    placed = assigned.select("group", "client_id", "each.topic", f.explode("each.partitions").alias("partition"))
    return placed.groupBy(*_PARTITION).agg(f.array_sort(f.collect_set("client_id")).alias("clients"))
