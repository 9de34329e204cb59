"""A pass over the new micro-batches: each family of tables in turn, then the mark that the pass is done.

``lag`` compares each sample of a partition's end offset with each group's committed offset at that time. Each commit in a pass
was the newest of its group and partition during an interval. A sample is joined to the commit whose interval contains the
sample's time. Samples are few, one for each partition and micro-batch, and are broadcast to the commits.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from odradek.pipeline.errors import NoRecords
from odradek.pipeline.schema import (
    CHECKPOINTS_DIR,
    GROUP_METADATA,
    MODERN_GROUP_PREFIXES,
    OFFSET_COMMIT,
    RAW,
    RAW_DIR,
    SHARE_SNAPSHOT,
    SHARE_UPDATE,
    STREAMS_GROUP_PREFIX,
    TRANSACTION,
    local_rows,
    read_end_offsets,
    read_topic_ids,
)
from odradek.pipeline.session import configured
from odradek.pipeline.tables import consumer_groups, groups, moves, offsets, share_partitions, streams_tasks, transactions
from odradek.pipeline.tables.files import Files, Pass, Writer, by_key, distinct_samples, fixed_plans, read_state
from odradek.pipeline.tables.offsets import KEY, Commits
from odradek.pipeline.tables.schema import LAG
from odradek.pipeline.tables.stories import Told

_SHARE_STATES = {SHARE_SNAPSHOT, SHARE_UPDATE}
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


@dataclass(frozen=True, slots=True)
class Built:
    """The input of a pass: numbers of records and of end offset samples; 0 if nothing was new."""

    records: int = 0
    samples: int = 0


def build_tables(spark: SparkSession, warehouse: str, on_progress: Callable[[str], None] = lambda _: None) -> Built:
    """Update the tables to the present ``raw`` and ``end_offsets``. Only one job at a time may do so.

    Raises NoRecords before the first ingest. ``on_progress`` is called with a description of each step.
    """
    files = Files(spark, warehouse)
    if not files.has(RAW_DIR) and not files.has(CHECKPOINTS_DIR):
        raise NoRecords(f"the warehouse {warehouse} has no records: run odradek pipeline ingest first")
    last = files.last_pass()
    paths, raw_batch = files.new_raw(last.raw_batch)
    sampled_at_us = f.unix_micros("sampled_at")
    samples = read_end_offsets(spark, files.path).where(sampled_at_us > last.sampled_until_us)
    figures = samples.agg(f.count(f.lit(1)).alias("count"), f.max(sampled_at_us).alias("until_us")).collect()[0]
    if not paths and not figures["count"]:
        return Built()
    sampled_until_us = figures["until_us"] if figures["count"] else last.sampled_until_us
    # A sample written meanwhile belongs to the next pass.
    samples = distinct_samples(samples.where(sampled_at_us <= sampled_until_us))
    raw = local_rows(spark, RAW)
    if paths:
        raw = spark.read.schema(RAW).option("basePath", f"{files.path}/{RAW_DIR}").parquet(*paths)
    counted = {row["kind"]: row["count"] for row in raw.groupBy("kind").count().collect()}
    records = sum(counted.values())
    number = last.number + 1
    has_modern_groups = _has(counted, MODERN_GROUP_PREFIXES)
    done = Pass(
        number=number,
        raw_batch=raw_batch,
        sampled_until_us=sampled_until_us,
        offsets_pass=number if OFFSET_COMMIT in counted else last.offsets_pass,
        groups_pass=number if GROUP_METADATA in counted or has_modern_groups else last.groups_pass,
        consumer_groups_pass=number if has_modern_groups else last.consumer_groups_pass,
        transactions_pass=number if TRANSACTION in counted else last.transactions_pass,
        share_partitions_pass=number if _SHARE_STATES & counted.keys() else last.share_partitions_pass,
        streams_groups_pass=number if _has(counted, STREAMS_GROUP_PREFIX) else last.streams_groups_pass,
    )
    with configured(spark, fixed_plans(spark, records)):
        _Run(spark, files, last, Writer(files.path, number), on_progress).take(raw, set(counted), samples)
    files.mark(done)
    files.forget_before(last)
    return Built(records, figures["count"])


@dataclass(frozen=True, slots=True)
class _Run:
    """One pass, after the ``last`` pass that is done."""

    spark: SparkSession
    files: Files
    last: Pass
    writer: Writer
    on_progress: Callable[[str], None]

    def take(self, raw: DataFrame, kinds: Collection[str], samples: DataFrame) -> None:
        """Write the tables' rows for these records, of these kinds, and these samples."""
        offsets_before = self._state("offsets_now", offsets.STATE)
        if OFFSET_COMMIT in kinds:
            self.on_progress("tables: offsets")
            commits = offsets.build_offsets(raw, offsets_before, self.writer)
        else:
            commits = offsets.Commits(local_rows(self.spark, offsets.STORED_COMMITS), offsets_before)
        self.on_progress("tables: lag")
        build_lag(commits, samples, self.writer)
        if GROUP_METADATA in kinds or _has(kinds, MODERN_GROUP_PREFIXES):
            self.on_progress("tables: groups")
            self._take_groups(raw, kinds, commits)
        if TRANSACTION in kinds:
            self.on_progress("tables: transactions")
            ids = self._state("transactional_ids_now", transactions.STATE)
            transactions.build_transactions(raw, ids, self.writer)
        if _SHARE_STATES.intersection(kinds):
            self.on_progress("tables: share partitions")
            before = self._state("share_partitions_now", share_partitions.STATE)
            share_partitions.build_share_partitions(raw, before, self._topic_names(), self.writer)
        if _has(kinds, STREAMS_GROUP_PREFIX):
            self.on_progress("tables: tasks of streams groups")
            streams_tasks.build_tasks(raw, self._state("streams_groups", streams_tasks.STATE), self.writer)

    def _take_groups(self, raw: DataFrame, kinds: Collection[str], commits: offsets.Commits) -> None:
        owners = self._state("partition_owners", moves.STATE)
        before = self._state("groups_now", groups.STATE)
        if not _has(kinds, MODERN_GROUP_PREFIXES):
            none = Told(local_rows(self.spark, consumer_groups.OUTPUT))
            groups.build_groups(raw, before, owners, commits, none, self.writer)
            return
        states = self._state("consumer_groups", consumer_groups.STATE)
        with consumer_groups.tell(raw, states, self._topic_names()) as consumer:
            groups.build_groups(raw, before, owners, commits, consumer, self.writer)
            self.writer.state("consumer_groups", by_key(consumer.rows("groups_now"), "group"), "group")

    def _topic_names(self) -> dict[str, str]:
        """Return the known topics by id."""
        return {row.topic_id: row.topic for row in read_topic_ids(self.spark, self.files.path).collect()}

    def _state(self, name: str, schema: StructType) -> DataFrame:
        return read_state(self.spark, self.files, name, schema, self.last)


def _has(kinds: Collection[str], prefix: str | tuple[str, ...]) -> bool:
    return any(kind.startswith(prefix) for kind in kinds)
