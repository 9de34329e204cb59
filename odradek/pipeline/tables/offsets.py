"""``offset_commits`` and ``offsets_now``: each commit against the commit before, of the same group and partition.

The files of ``offset_commits`` have three private columns, for later jobs in the same pass. ``_since`` and ``_until`` bound the
interval in which a commit was the newest (``_until`` null: it still is); intervals do not overlap even where clocks went back.
``_is_oldest`` marks the first commit of a key in the pass.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from odradek.pipeline.schema import BOOLEAN, OFFSET_COMMIT, TIME, struct
from odradek.pipeline.tables.files import Writer, by_key
from odradek.pipeline.tables.schema import OFFSET_COMMITS, OFFSETS_NOW, RECORD_ORDER

KEY = ("group", "topic", "partition")
STORED_COMMITS = struct(OFFSET_COMMITS, _since=TIME, _until=TIME, _is_oldest=BOOLEAN)
STATE = struct(OFFSETS_NOW, _since=TIME)


@dataclass(frozen=True, slots=True)
class Commits:
    """The new commits of a pass, as ``STORED_COMMITS``, and the newest commits before it, as ``STATE``."""

    found: DataFrame
    before: DataFrame


def build_offsets(raw: DataFrame, before: DataFrame, writer: Writer) -> Commits:
    """Write both tables out of new ``RAW`` rows and the ``STATE`` before them."""
    spark = raw.sparkSession
    path = writer.table("offset_commits", _commits(raw, before), *KEY, *RECORD_ORDER)
    found = spark.read.schema(STORED_COMMITS).parquet(path)
    touched = found.where("_is_oldest").select(*KEY)
    newest = found.where("_until IS NULL AND kind != 'deleted'").select(*STATE.names)
    now = before.join(touched, list(KEY), "left_anti").select(*STATE.names).unionByName(newest)
    writer.state("offsets_now", by_key(now, *KEY), *KEY)
    return Commits(found, before)


def _commits(raw: DataFrame, before: DataFrame) -> DataFrame:
    """Return the new commits, partitioned by key."""
    new = raw.where(f.col("kind") == OFFSET_COMMIT).select(
        "group",
        f.col("commit_topic").alias("topic"),
        f.col("commit_partition").alias("partition"),
        f.col("timestamp").alias("at"),
        "committed_offset",
        "metadata",
        "leader_epoch",
        f.col("partition").alias("record_partition"),
        f.col("offset").alias("record_offset"),
        f.col("timestamp").alias("_since"),
        f.lit(False).alias("_is_before"),
    )
    rows = by_key(new.unionByName(before.withColumn("_is_before", f.lit(True))), *KEY)
    in_order = Window.partitionBy(*KEY).orderBy(*RECORD_ORDER)
    rows = rows.withColumns(
        {
            "_since": f.max("_since").over(in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)),
            "previous_offset": f.lag("committed_offset").over(in_order),
            "_previous_at": f.lag("at").over(in_order),
            "_is_oldest": f.coalesce(f.lag("_is_before").over(in_order), f.lit(True)),
            "_next_at": f.lead("at").over(in_order),
        }
    )
    rows = rows.withColumn("_until", f.when(f.col("_next_at").isNotNull(), f.greatest("_since", "_next_at")))
    rows = rows.where(~f.col("_is_before")).withColumns({"delta": f.col("committed_offset") - f.col("previous_offset")})
    seconds = (f.unix_micros("at") - f.unix_micros("_previous_at")) / f.lit(1e6)
    rows = rows.withColumn("seconds_since", f.when(f.col("previous_offset").isNotNull(), seconds))
    rate = f.when(f.col("seconds_since") > 0, f.col("delta") / f.col("seconds_since"))
    return rows.withColumns({"rate_per_s": rate, "kind": _kind()}).select(*STORED_COMMITS.names)


def _kind() -> Column:
    return (
        f.when(f.col("committed_offset").isNull(), "deleted")
        .when(f.col("previous_offset").isNull(), "first")
        .when(f.col("delta") > 0, "progress")
        .when(f.col("delta") < 0, "backward")
        .otherwise("repeat")
    )
