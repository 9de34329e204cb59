"""``lag``: each sample of a partition's end offset against each group's committed offset at that time.

Each commit in a pass was the newest of its group and partition during an interval. A sample is joined to the commit whose
interval contains the sample's time. Samples are few, one for each partition and micro-batch, and are broadcast to the commits.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from odradek.pipeline.tables.offsets import KEY, Commits
from odradek.pipeline.tables.writing import Writer, by_key
from odradek.pipeline.tables_schema import LAG

_TIMES = (*KEY, "committed_offset", "_since", "_until")


def build_lag(commits: Commits, samples: DataFrame, writer: Writer) -> None:
    """Write the table for new ``END_OFFSETS`` rows."""
    replaced = commits.found.where("_is_oldest").select(*KEY, f.col("_since").alias("_until"))
    before = commits.before.join(replaced, list(KEY), "left").select(*_TIMES)
    times = commits.found.where("kind != 'deleted'").select(*_TIMES).unionByName(before)
    is_then = (f.col("sampled_at") >= f.col("_since")) & (f.col("_until").isNull() | (f.col("sampled_at") < f.col("_until")))
    rows = times.join(f.broadcast(samples), ["topic", "partition"]).where(is_then)
    behind = f.greatest(f.col("end_offset") - f.col("committed_offset"), f.lit(0).cast("long"))
    rows = by_key(rows.withColumn("lag", behind).select(*LAG.names), *KEY)
    writer.table("lag", rows, *KEY, "sampled_at", "end_offset")
