"""Ingest: the coordinators' three topics, through Spark's own Kafka source, into the warehouse's ``raw`` and ``quarantine``.

Exactly once, across restarts. The checkpoint holds the offset range of each micro-batch before it begins. An interrupted
micro-batch is repeated over the same range. Its output directories bear its number, so the repetition replaces them:

    raw/topic=T/date=D/batch=N/*.parquet          of micro-batch N, all or nothing once N + 1 begins
    quarantine/topic=T/date=D/batch=N/*.parquet   the same
    end_offsets/*.parquet                         samples; a duplicate is harmless
    topic_ids/*.parquet                           the cluster's topics, if records name topics by id; the same

Ingest reads committed records only (``isolation.level``). An offset committed in a transaction is read when the transaction has
committed. While a transaction is open on a partition of ``__consumer_offsets``, the records behind its first one wait.

The share coordinator deletes records of its topic that a later snapshot makes redundant. So Spark may not take lost records for
a failure. For the other topics, ingest compares the checkpoint with the partitions' offsets by itself, before it reads.

Left out: merging small files. A micro-batch writes one file for each topic and day, or several if it has many records.

Lag is to be known before the first sample, as far as the cluster can still tell past end offsets. A sample is taken at each
micro-batch, but the first micro-batch may cover a long history, and so may one after a pause. Kafka can look up the first offset
whose record is not older than a given time. If a partition's records are in the order of their timestamps, this was its end
offset then. (They are, if brokers or one well-set clock gave the timestamps.) There is no answer where retention has deleted the
records of that time, or where no record was written since.

The offset range of a micro-batch is known from the checkpoint of Spark's stream before the micro-batch is read.

    offsets/N       the end of micro-batch N: a version, the query's settings, and last the source's offsets, each on a line
    sources/0/0     the start of the first micro-batch: a version, and the source's offsets

The source is Spark's for Kafka. Its offsets are ``{"topic": {"partition": offset, ...}, ...}``. A file that cannot be read
gives an unknown range. The range sizes the work, and is what lost records are found by.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from odradek.pipeline.cluster import Cluster, require_reachable, source_options
from odradek.pipeline.decode import decode
from odradek.pipeline.errors import NoRecords, PipelineError, Unreachable, root_cause
from odradek.pipeline.schema import (
    CONSUMER_OFFSETS,
    END_OFFSETS,
    END_OFFSETS_DIR,
    PARTITIONED_BY,
    QUARANTINE,
    QUARANTINE_DIR,
    RAW,
    RAW_DIR,
    TOPIC_IDS,
    TOPIC_IDS_DIR,
    TOPICS,
    TRANSACTION,
    TRANSACTION_STATE,
    WITH_TOPIC_IDS,
    local_rows,
    read_end_offsets,
    read_topic_ids,
)
from odradek.pipeline.session import configured
from odradek.pipeline.warehouse import Directory, Warehouse

Offsets: TypeAlias = dict[tuple[str, int], int]


class Checkpoint:
    """The checkpoint in the directory ``path``."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._directory = Directory(spark, path)

    def offsets_in(self, batch: int) -> int | None:
        """Return the number of offsets in micro-batch ``batch``: its records and its control records; None if unknown."""
        end = self._total(f"offsets/{batch}")
        begin = self._total(f"offsets/{batch - 1}" if batch else "sources/0/0")
        return None if begin is None or end is None else end - begin

    def position(self) -> Offsets:
        """Return the offsets from which the next record is read: (topic, partition) and offset. None are known at first."""
        done = [int(name) for name in (str(path.getName()) for path in self._directory.found("commits/*")) if name.isdecimal()]
        return self._offsets(f"offsets/{max(done)}" if done else "sources/0/0") or {}

    def _total(self, name: str) -> int | None:
        offsets = self._offsets(name)
        return None if offsets is None else sum(offsets.values())

    def _offsets(self, name: str) -> Offsets | None:
        try:
            text = self._directory.read_text(name)
            found = json.loads(text.rstrip().rpartition("\n")[2])
            return {(topic, int(index)): int(offset) for topic, of_topic in found.items() for index, offset in of_topic.items()}
        except (Py4JJavaError, ValueError, AttributeError):
            return None


_SAMPLES = 20
_SHORTEST_STEP_MS = 5000


def times_between(first_ms: int, last_ms: int) -> Iterator[int]:
    """Yield times to look up, ms since the epoch, evenly spread: at most about 20, at least 5 s apart except for the last."""
    step_ms = max(_SHORTEST_STEP_MS, (last_ms - first_ms) // _SAMPLES)
    yield from range(first_ms + step_ms, last_ms, step_ms)
    if last_ms - first_ms >= step_ms:
        yield last_ms


def past_ends(cluster: Cluster, topics: Iterable[str], first_ms: int, last_ms: int) -> list[tuple[str, int, int, int]]:
    """Return (topic, partition, end offset, ms since the epoch) of the topics' partitions in this time. Raises PipelineError."""
    times = list(times_between(first_ms, last_ms))
    if not times:
        return []
    topics = list(topics)
    begins = {(topic, partition): offset for topic, partition, offset in cluster.begin_offsets(topics)}
    return [
        (topic, partition, offset, time_ms)
        for time_ms in times
        for topic, partition, offset in cluster.offsets_at(topics, time_ms)
        # -1: no record was written since. A log start offset above 0: the partition has lost records, and the first one left may
        # be much younger than the time looked up.
        if offset > begins.get((topic, partition), 0) or offset == begins.get((topic, partition)) == 0
    ]


JOB = "ingest"
# The topics that lose no record that a reader of all of them needs.
_KEPT = (CONSUMER_OFFSETS, TRANSACTION_STATE)
_POLL_S = 1
# useDeprecatedOffsetFetching: Spark's newer offset lookup skips internal topics, whether subscribed or assigned; the older one
# does not. (A subscription would create a consumer group, whose records would then be part of the history that is read.)
# maxConcurrentOutputFileWriters: a task keeps one file open for each directory, up to this many; beyond that, Spark sorts the
# records by directory first.
_CONFIGS = {
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
}
# A task writes a file for each topic and day of its records.
_RECORDS_A_TASK = 125_000
_RECORDS_A_POLL, _BYTES_A_POLL = "50000", str(4 * 1024 * 1024)
_FETCH_WAIT_MS = "5"
# Signs in a client's stack trace that the cluster did not answer, or not in time.
_UNREACHABLE = ("TimeoutException", "DisconnectException", "Connection refused", "UnknownHostException")


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """The source and the destination of ingest.

    ``starting_offsets`` applies while there is no checkpoint: ``earliest``, ``latest``, or JSON as Spark's source takes it.
    ``kafka_config`` applies to consumers and the Admin client (``security.protocol`` and so on).
    """

    bootstrap_servers: str
    warehouse: str
    starting_offsets: str = "earliest"
    kafka_config: Mapping[str, str] = field(default_factory=dict)
    max_records_per_batch: int = 4_000_000


@dataclass(frozen=True, slots=True)
class Ingested:
    """The progress of a run: records read, records quarantined among them, micro-batches."""

    records: int = 0
    quarantined: int = 0
    batches: int = 0


def check(options: IngestOptions) -> None:
    """Check the options as far as possible before Spark is started. Raises PipelineError."""
    offsets = options.starting_offsets
    try:
        is_known = offsets in {"earliest", "latest"} or isinstance(json.loads(offsets), dict)
    except ValueError:
        is_known = False
    if not is_known:
        form = '{"__consumer_offsets": {"0": 17, ...}, ...}'
        raise PipelineError(f"--starting-offsets is {offsets!r}: give earliest, latest or an offset for every partition, {form}")
    # Spark and Hadoop would treat the path as a pattern, and find nothing.
    special = sorted(set(options.warehouse) & set("*?[]{}"))
    if special:
        raise PipelineError(
            f"--warehouse {options.warehouse} contains {' '.join(special)}, which Spark reads as a pattern: use another name"
        )
    require_reachable(options.bootstrap_servers)


def ingest(spark: SparkSession, options: IngestOptions, on_progress: Callable[[Ingested], None] = lambda _: None) -> Ingested:
    """Ingest the records that the topics have now and the warehouse lacks. Raises PipelineError."""
    check(options)
    with Cluster(spark, options.bootstrap_servers, options.kafka_config) as cluster:
        warehouse = Warehouse(spark, options.warehouse)
        checkpoint = warehouse.prepare(cluster.cluster_id(), JOB)
        partitions = cluster.partitions(TOPICS)
        if not partitions:
            reason = f"the cluster at {options.bootstrap_servers} has no topic {' or '.join(TOPICS)}"
            raise NoRecords(f"{reason}: brokers create them for the first group or transaction; run this again after that")
        run = _Run(spark, warehouse.path, cluster, Checkpoint(spark, checkpoint))
        run.require_kept(_KEPT)
        stream = _source(spark, options, partitions).writeStream.foreachBatch(run.write)
        stream = stream.option("checkpointLocation", checkpoint).queryName("odradek ingest").trigger(availableNow=True)
        with configured(spark, _CONFIGS):
            query = stream.start()
        _finish(query, run, options, on_progress)
        if not run.done.batches:
            # Partitions may grow although no group commits, and then lag grows.
            run.sample_end_offsets()
        return run.done


def _source(spark: SparkSession, options: IngestOptions, partitions: dict[str, list[int]]) -> DataFrame:
    settings = {
        "kafka.isolation.level": "read_committed",
        # Spark asks for a partition's start and end after each poll, and discards the records fetched ahead. At the end of a
        # partition that question waits behind a long-polling fetch, hence the short wait.
        "kafka.fetch.max.wait.ms": _FETCH_WAIT_MS,
        "kafka.max.poll.records": _RECORDS_A_POLL,
        "kafka.max.partition.fetch.bytes": _BYTES_A_POLL,
        **source_options(options.bootstrap_servers, options.kafka_config),
        "assign": json.dumps(partitions),
        "startingOffsets": options.starting_offsets,
        "maxOffsetsPerTrigger": str(options.max_records_per_batch),
        # A hot group is in one partition of the topic. This lets several tasks share the partition.
        "maxRecordsPerPartition": str(_RECORDS_A_TASK),
        "failOnDataLoss": "false",
    }
    return spark.readStream.format("kafka").options(**settings).load()


def _finish(query: StreamingQuery, run: "_Run", options: IngestOptions, on_progress: Callable[[Ingested], None]) -> None:
    try:
        while not query.awaitTermination(_POLL_S):
            on_progress(run.done)
    except StreamingQueryException as failure:
        if run.failure is not None:
            raise run.failure from failure
        raise _pipeline_error(failure, options) from failure
    finally:
        query.stop()


def _pipeline_error(failure: StreamingQueryException, options: IngestOptions) -> PipelineError:
    text = str(failure)
    if any(sign in text for sign in _UNREACHABLE):
        return Unreachable(f"the cluster at {options.bootstrap_servers} stopped answering: run this again when it is back")
    return PipelineError(f"ingest failed; run it again to continue from its checkpoint: {root_cause(text)}")


class _Run:
    """One run: its progress, and the topics whose end offsets it samples."""

    def __init__(self, spark: SparkSession, warehouse: str, cluster: Cluster, checkpoint: Checkpoint) -> None:
        self.done = Ingested()
        self.failure: PipelineError | None = None
        self._spark, self._warehouse, self._cluster, self._checkpoint = spark, warehouse, cluster, checkpoint
        sampled = read_end_offsets(spark, warehouse).select("topic").distinct()
        self._topics: set[str] = {row.topic for row in sampled.toLocalIterator()}

    def require_kept(self, topics: Iterable[str]) -> None:
        """Raise PipelineError if one of these topics has lost records that were not read."""
        topics = list(topics)
        begins, ends = (
            {(topic, partition): offset for topic, partition, offset in offsets_of(topics)}
            for offsets_of in (self._cluster.begin_offsets, self._cluster.end_offsets)
        )
        for place, offset in self._checkpoint.position().items():
            # A partition without a leader is not known.
            if place in begins and not begins[place] <= offset <= ends.get(place, offset):
                reason = f"the topics lost records that the warehouse {self._warehouse} does not have yet"
                raise PipelineError(f"{reason} (a topic was created again or truncated): start with a new --warehouse")

    def write(self, records: DataFrame, batch: int) -> None:
        """Write one micro-batch, replacing the output of an interrupted attempt."""
        decoded = decode(records.coalesce(self._tasks(batch)))
        observed = Observation()
        of_group_ms = f.when(f.col("kind") != TRANSACTION, f.unix_millis("timestamp"))
        names_ids = reduce(or_, map(f.col("kind").startswith, WITH_TOPIC_IDS))
        is_bad = f.col("reason").isNotNull()
        rows = decoded.withColumns({"date": f.to_date("timestamp"), "batch": f.lit(batch).cast("long")}).observe(
            observed,
            f.count(f.lit(1)).alias("records"),
            f.count(f.when(is_bad, 1)).alias("quarantined"),
            f.to_json(f.collect_set("commit_topic")).alias("topics"),
            f.to_json(f.collect_set(_topics_of_members())).alias("topics_of_members"),
            f.count(f.when(names_ids, 1)).alias("records_with_ids"),
            f.min(of_group_ms).alias("first_ms"),
            f.max(of_group_ms).alias("last_ms"),
        )
        self._replace(rows.where(~is_bad).select(*RAW.names), RAW_DIR)
        figures: dict[str, Any] = observed.get
        if figures["quarantined"]:
            bad = decoded.where(is_bad).withColumns({"date": f.to_date("timestamp"), "batch": f.lit(batch).cast("long")})
            self._replace(bad.select(*QUARANTINE.names), QUARANTINE_DIR)
        self._topics.update(json.loads(figures["topics"]), *json.loads(figures["topics_of_members"]))
        if figures["records_with_ids"]:
            self._add_topic_ids()
        self.sample_end_offsets()
        # None if the micro-batch has no records of groups.
        if figures["first_ms"] is not None:
            self._sample_past_ends(figures["first_ms"], figures["last_ms"])
        done = self.done
        self.done = Ingested(done.records + figures["records"], done.quarantined + figures["quarantined"], done.batches + 1)

    def _tasks(self, batch: int) -> int:
        """Return the number of tasks: many for many records, to load all cores despite skew; few, with few files, for few."""
        offsets = self._checkpoint.offsets_in(batch)
        return self._spark.sparkContext.defaultParallelism if offsets is None else max(1, -(-offsets // _RECORDS_A_TASK))

    def sample_end_offsets(self) -> None:
        """Sample the end offsets of the topics that groups have committed to, or that their members read."""
        if not self._topics:
            return
        ends = self._asked(self._cluster.end_offsets, sorted(self._topics))
        samples = local_rows(self._spark, "topic string, partition int, end_offset long", ends)
        self._append_samples(samples.withColumn("sampled_at", f.current_timestamp()))

    def _sample_past_ends(self, first_ms: int, last_ms: int) -> None:
        """Sample the end offsets at the time when this micro-batch's records of groups were written."""
        ends = self._asked(past_ends, self._cluster, sorted(self._topics), first_ms, last_ms)
        if ends:
            samples = local_rows(self._spark, "topic string, partition int, end_offset long, time_ms long", ends)
            self._append_samples(samples.withColumn("sampled_at", f.timestamp_millis("time_ms")))

    def _add_topic_ids(self) -> None:
        """Store the topics that the cluster has and the warehouse lacks: a topic may be deleted later."""
        known = {tuple(row) for row in read_topic_ids(self._spark, self._warehouse).collect()}
        new = sorted(set(self._asked(self._cluster.topic_ids)) - known)
        if new:
            rows = local_rows(self._spark, TOPIC_IDS, new).coalesce(1)
            rows.write.mode("append").parquet(f"{self._warehouse}/{TOPIC_IDS_DIR}")

    def _asked(self, ask: Callable[..., list[tuple[Any, ...]]], *arguments: Any) -> list[tuple[Any, ...]]:
        try:
            return ask(*arguments)
        except PipelineError as failure:
            # On its way through Java the exception is wrapped by Spark; the original is kept here.
            self.failure = failure
            raise

    def _append_samples(self, samples: DataFrame) -> None:
        samples.select(*END_OFFSETS.names).coalesce(1).write.mode("append").parquet(f"{self._warehouse}/{END_OFFSETS_DIR}")

    def _replace(self, rows: DataFrame, directory: str) -> None:
        writer = rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(*PARTITIONED_BY)
        writer.parquet(f"{self._warehouse}/{directory}")


def _topics_of_members() -> Column:
    """Return the topics that a record's members are assigned, or that a member of a newer group reads; null for none.

    Each micro-batch collects these arrays, and members of a group mostly have the same.
    """
    assigned = f.expr(
        "array_sort(array_distinct(flatten(transform(members, member -> transform(member.assignment, a -> a.topic)))))"
    )
    names = {
        "consumer_group_member_metadata": "$.subscribed_topic_names",
        "consumer_group_regular_expression": "$.topics",
        "share_group_member_metadata": "$.subscribed_topic_names",
    }
    subscribed = [
        f.when(f.col("kind") == kind, f.from_json(f.get_json_object("fields", path), "array<string>"))
        for kind, path in names.items()
    ]
    return f.coalesce(*subscribed, assigned)
