"""Tables for their readers: passes that are done, and public columns only."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StructField, StructType

from odradek.pipeline.schema import TABLES_DIR, local_rows, read_end_offsets
from odradek.pipeline.tables.files import Files, Pass
from odradek.pipeline.tables_schema import HISTORY, SAMPLES, SNAPSHOTS, STATE_DIR, TABLES

# A view of the state of all transactional ids.
_OPEN = "open_transactions"
# Classic groups and consumer groups have separate states.
_GROUPS, _CONSUMER_GROUPS = "groups_now", "consumer_groups"
_OPEN_STATUSES = ("Ongoing", "PrepareCommit", "PrepareAbort")


def read_table(spark: SparkSession, warehouse: str, name: str) -> DataFrame:
    """Return a table with its columns of ``tables_schema.TABLES``; no rows before the first pass. Raises KeyError."""
    schema = TABLES[name]
    files = Files(spark, warehouse)
    done = files.last_pass()
    if name == SAMPLES:
        return distinct_samples(
            read_end_offsets(spark, warehouse).where(f.unix_micros("sampled_at") <= done.sampled_until_us)
        ).select(*schema.names)
    if name in HISTORY:
        if not files.has(f"{TABLES_DIR}/{name}") or done.number < 0:
            return local_rows(spark, schema)
        stored = StructType([*schema.fields, StructField("batch", LongType())])
        rows = spark.read.schema(stored).parquet(f"{files.path}/{TABLES_DIR}/{name}")
        return rows.where(f.col("batch") <= done.number).select(*schema.names)
    stored_name = "transactional_ids_now" if name == _OPEN else name
    rows = read_state(spark, files, stored_name, SNAPSHOTS[stored_name], done)
    if name == _GROUPS:
        rows = rows.unionByName(read_state(spark, files, _CONSUMER_GROUPS, SNAPSHOTS[name], done))
    if name == _OPEN:
        rows = rows.where(f.col("status").isin(*_OPEN_STATUSES))
    return rows.select(*schema.names)


def distinct_samples(samples: DataFrame) -> DataFrame:
    """Return distinct ``END_OFFSETS``: a sample of the past exists twice if ingest began anew."""
    return samples.groupBy("topic", "partition", "sampled_at").agg(f.max("end_offset").alias("end_offset"))


def read_state(spark: SparkSession, files: Files, name: str, schema: StructType, done: Pass) -> DataFrame:
    """Return a state after this pass; no rows before the first."""
    number = done.state_pass(name)
    if number < 0:
        return local_rows(spark, schema)
    return spark.read.schema(schema).parquet(f"{files.path}/{STATE_DIR}/{name}/batch={number}")
