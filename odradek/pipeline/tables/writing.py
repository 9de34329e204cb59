"""How a pass writes: the same rows into the same files, whatever the machines, cores and splits they were computed with.

Rows are spread over a fixed number of partitions (``spark.sql.shuffle.partitions``) by their key, and sorted within each.
Adaptive execution, which would merge partitions by what a run finds out about their sizes, is off meanwhile. What is kept on disk
for a second look goes there through memory, some rows at a time: by default ten thousand, too many where they have large groups.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from odradek.pipeline.schema import TABLES_DIR
from odradek.pipeline.tables_schema import STATE_DIR

# Plans that depend on what is asked for alone.
FIXED_PLANS = {"spark.sql.adaptive.enabled": "false", "spark.sql.inMemoryColumnarStorage.batchSize": "250"}


def by_key(rows: DataFrame, *key: str) -> DataFrame:
    """The rows, spread by their key: windows over it need no other exchange."""
    return rows.repartition(int(str(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))), *key)


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
