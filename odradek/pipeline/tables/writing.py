"""How a pass writes: the same rows into the same files, whatever the machines, cores and splits they were computed with.

Rows are spread by their key, and sorted within each partition, of which there are ``spark.sql.shuffle.partitions``, or more where
the pass takes many records. Adaptive execution, which would merge partitions by what a run finds out about their sizes, is off
meanwhile. What is kept on disk for a second look goes there through memory, some rows at a time: by default ten thousand,
which is too many where they have large groups.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from odradek.pipeline.schema import TABLES_DIR
from odradek.pipeline.tables_schema import STATE_DIR

_PARTITIONS = "spark.sql.shuffle.partitions"
# So that what a task sorts has room in its share of a small driver's memory: on disk it takes half as long again.
_RECORDS_A_PARTITION = 1_000_000


def fixed_plans(spark: SparkSession, records: int) -> dict[str, str]:
    """Configs for plans that depend on what is asked for, and on how many records there are, alone."""
    partitions = max(_partitions(spark), -(-records // _RECORDS_A_PARTITION))
    return {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.inMemoryColumnarStorage.batchSize": "250",
        _PARTITIONS: str(partitions),
    }


def by_key(rows: DataFrame, *key: str) -> DataFrame:
    """The rows, spread by their key: windows over it need no other exchange."""
    return rows.repartition(_partitions(rows.sparkSession), *key)


def _partitions(spark: SparkSession) -> int:
    return int(str(spark.conf.get(_PARTITIONS)))


@dataclass(frozen=True, slots=True)
class Writer:
    """Where pass ``number`` writes. What an earlier attempt at it has written is replaced."""

    warehouse: str
    number: int

    def table(self, name: str, rows: DataFrame, *order: str) -> str:
        """Write what is new in a table, and give its directory; ``rows`` are spread by key, ``order`` tells any two apart."""
        return self._write(f"{self.warehouse}/{TABLES_DIR}/{name}/batch={self.number}", rows, order)

    def state(self, name: str, rows: DataFrame, *order: str) -> str:
        """Write how things stand now; the same."""
        return self._write(f"{self.warehouse}/{STATE_DIR}/{name}/batch={self.number}", rows, order)

    @staticmethod
    def _write(path: str, rows: DataFrame, order: tuple[str, ...]) -> str:
        rows.sortWithinPartitions(*order).write.mode("overwrite").parquet(path)
        return path
