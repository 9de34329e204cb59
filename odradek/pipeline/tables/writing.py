"""Reproducible writing: the same rows go into the same files, whatever the machines, cores and splits they were computed with.

Rows are partitioned by their key, and sorted within each partition. There are ``spark.sql.shuffle.partitions`` of these, or
more if the pass has many records. Adaptive execution is off meanwhile, because it merges partitions by their run-time sizes.
Rows persisted on disk are written in batches that are built in memory. Spark's default of ten thousand rows in a batch is too
many for records of large groups.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from odradek.pipeline.schema import TABLES_DIR
from odradek.pipeline.tables_schema import STATE_DIR

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
