"""The files of the tables: found and read through Hadoop's file systems, written reproducibly.

    checkpoints/ingest/commits/N       micro-batch N is in ``raw`` completely
    state/passes/N.json                pass N is done; written under another name first, then renamed

Only directories are listed, one for each micro-batch, day and topic; never rows.

The same rows go into the same files, whatever the machines, cores and splits they were computed with. Rows are partitioned by
their key, and sorted within each partition. There are ``spark.sql.shuffle.partitions`` of these, or more if the pass has many
records. Adaptive execution is off meanwhile, because it merges partitions by their run-time sizes. Rows persisted on disk are
written in batches that are built in memory. Spark's default of ten thousand rows in a batch is too many for records of large
groups.
"""

import json
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from odradek.pipeline.errors import PipelineError
from odradek.pipeline.schema import CHECKPOINTS_DIR, LONG, RAW_DIR, STATE_DIR, TABLES_DIR, local_rows, read_end_offsets, struct
from odradek.pipeline.tables.schema import HISTORY, SAMPLES, SNAPSHOTS, TABLES
from odradek.pipeline.warehouse import Directory

_COMMITS = f"{CHECKPOINTS_DIR}/ingest/commits"
_PASSES = f"{STATE_DIR}/passes"
_STATES = {
    "offsets_now": "offsets_pass",
    "groups_now": "groups_pass",
    "partition_owners": "groups_pass",
    "consumer_groups": "consumer_groups_pass",
    "transactional_ids_now": "transactions_pass",
    "share_partitions_now": "share_partitions_pass",
    "tasks_now": "streams_groups_pass",
    "streams_groups": "streams_groups_pass",
}


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass that is done: the position of the tables.

    ``raw_batch`` is the last micro-batch read, ``sampled_until_us`` the time of the last sample read, in µs since the epoch.
    The other fields are the passes that wrote the states: this one, or an earlier one if this one had no records of that kind.
    """

    number: int = -1
    raw_batch: int = -1
    sampled_until_us: int = -1
    offsets_pass: int = -1
    groups_pass: int = -1
    consumer_groups_pass: int = -1
    transactions_pass: int = -1
    share_partitions_pass: int = -1
    streams_groups_pass: int = -1

    def state_pass(self, name: str) -> int:
        """Return the number of the pass that wrote this state; -1 for none."""
        return int(getattr(self, _STATES[name]))


class Files:
    """The files of the warehouse ``path``."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._directory = Directory(spark, path)
        self.path = self._directory.path

    def new_raw(self, after: int) -> tuple[list[str], int]:
        """Return the directories of the complete micro-batches after ``after``, and the last complete micro-batch."""
        names = self._names(f"{_COMMITS}/*")
        last = max((int(name) for name in names if name.isdecimal()), default=-1)
        found = [
            str(path.toString())
            for path in self._directory.found(f"{RAW_DIR}/topic=*/date=*/batch=*")
            if after < int(str(path.getName()).partition("=")[2]) <= last
        ]
        return sorted(found), max(last, after)

    def has(self, directory: str) -> bool:
        """Return whether the directory exists."""
        return self._directory.exists(directory)

    def last_pass(self) -> Pass:
        """Return the newest pass that is done: the position of the tables."""
        names = [name.partition(".")[0] for name in self._names(f"{_PASSES}/*.json")]
        if not names:
            return Pass()
        return Pass(**json.loads(self._directory.read_text(f"{_PASSES}/{max(map(int, names))}.json")))

    def mark(self, done: Pass) -> None:
        """Mark the pass as done: from now on readers see its output."""
        written = f"{_PASSES}/{done.number}.json.part"
        self._directory.write_text(written, json.dumps(asdict(done)) + "\n")
        if not self._directory.rename(written, f"{_PASSES}/{done.number}.json"):
            raise PipelineError(f"another job is building the tables of {self.path}: wait for it, or stop it")

    def forget_before(self, last: Pass) -> None:
        """Delete states and marks older than those of ``last``, the newest pass but one.

        A reader that began at that pass still has its state.
        """
        for name in _STATES:
            for path in self._directory.found(f"{STATE_DIR}/{name}/batch=*"):
                if int(str(path.getName()).partition("=")[2]) < last.state_pass(name):
                    self._directory.delete(path)
        for path in self._directory.found(f"{_PASSES}/*.json"):
            if int(str(path.getName()).partition(".")[0]) < last.number:
                self._directory.delete(path)

    def _names(self, pattern: str) -> list[str]:
        return [str(path.getName()) for path in self._directory.found(pattern)]


# A view of the state of all transactional ids.
_OPEN = "open_transactions"
# Classic groups have a state of their own; consumer and share groups have one together.
_GROUPS, _CONSUMER_GROUPS = "groups_now", "consumer_groups"
_OPEN_STATUSES = ("Ongoing", "PrepareCommit", "PrepareAbort")


def read_table(spark: SparkSession, warehouse: str, name: str) -> DataFrame:
    """Return a table with its columns of ``schema.TABLES``; no rows before the first pass. Raises KeyError."""
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
        stored = struct(schema, batch=LONG)
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


_PARTITIONS = "spark.sql.shuffle.partitions"
# With this many records a task's sort fits in its share of a small driver's memory; a sort on disk takes half as long again.
_RECORDS_A_PARTITION = 1_000_000


def fixed_plans(spark: SparkSession, records: int) -> dict[str, str]:
    """Return configs for plans that depend only on the query and on the number of records."""
    partitions = max(_partitions(spark), -(-records // _RECORDS_A_PARTITION))
    return {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.inMemoryColumnarStorage.batchSize": "250",
        _PARTITIONS: str(partitions),
    }


def by_key(rows: DataFrame, *key: str) -> DataFrame:
    """Return the rows partitioned by their key; window functions over the key need no further exchange."""
    return rows.repartition(_partitions(rows.sparkSession), *key)


def _partitions(spark: SparkSession) -> int:
    return int(str(spark.conf.get(_PARTITIONS)))


@dataclass(frozen=True, slots=True)
class Writer:
    """The output of pass ``number``. It replaces the output of an earlier attempt at the pass."""

    warehouse: str
    number: int

    def table(self, name: str, rows: DataFrame, *order: str) -> str:
        """Write a table's new rows, and return their directory. ``rows`` are partitioned by key; ``order`` is total."""
        return self._write(f"{self.warehouse}/{TABLES_DIR}/{name}/batch={self.number}", rows, order)

    def state(self, name: str, rows: DataFrame, *order: str) -> str:
        """Write a state; the arguments are those of ``table``."""
        return self._write(f"{self.warehouse}/{STATE_DIR}/{name}/batch={self.number}", rows, order)

    @staticmethod
    def _write(path: str, rows: DataFrame, order: tuple[str, ...]) -> str:
        rows.sortWithinPartitions(*order).write.mode("overwrite").parquet(path)
        return path
