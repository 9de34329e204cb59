"""Stories in Spark: the records of one key after the other pass through Python code, in log order, and become rows of tables.

A row of the output belongs to one table; the columns of other tables are null. The output is computed once, and each table's
writer reads it. The state of a key is a row, too. The records of a key are in one partition, and are read as a stream.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Self, TypeAlias

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from odradek.pipeline.tables.files import by_key
from odradek.pipeline.tables.schema import RECORD_ORDER

Json: TypeAlias = dict[str, Any]
_ROWS_A_BATCH = 1000


class Record(NamedTuple):
    """A record of a story: ``fields`` are key and value as decoded by ingest; ``at_us`` is since the epoch."""

    kind: str
    is_tombstone: bool
    fields: Json
    at_us: int
    partition: int
    offset: int

    @classmethod
    def of(cls, row: Json) -> Self:
        """Return the record in a row of ``record_columns``. Tombstones of classic groups have no fields."""
        where = row["record_partition"], row["record_offset"]
        return cls(row["kind"], row["is_tombstone"], json.loads(row["fields"] or "{}"), row["at_us"], *where)

    def coordinates(self) -> Json:
        """Return the columns of each row that this record causes."""
        return {"at": self.at_us, "record_partition": self.partition, "record_offset": self.offset}


class Row(NamedTuple):
    """A row of the table with this name."""

    table: str
    columns: Json


@dataclass(frozen=True, slots=True)
class Told:
    """The output of the stories in a pass."""

    _decoded: DataFrame

    def rows(self, name: str) -> DataFrame:
        """Return the rows of this table."""
        return self._decoded.where(f.col(name).isNotNull()).select(f"{name}.*")


def record_columns(raw: DataFrame) -> DataFrame:
    """Return ``RAW`` rows with the columns that stories read."""
    return raw.select(
        "group",
        f.col("partition").alias("record_partition"),
        f.col("offset").alias("record_offset"),
        f.unix_micros("timestamp").alias("at_us"),
        "kind",
        "is_tombstone",
        "fields",
    )


@contextmanager
def told(
    records: DataFrame, key: tuple[str, ...], output: StructType, rows_of: Callable[[Iterable[Json]], Iterator[Row]]
) -> Iterator[Told]:
    """Yield the rows that ``rows_of`` makes of the records of each key, persisted for the ``with``.

    ``records`` have ``record_partition`` and ``record_offset``, and are passed on in that order. ``output`` has a struct for
    each table.
    """
    rows = by_key(records, *key).sortWithinPartitions(*key, *RECORD_ORDER)
    decoded = rows.mapInArrow(_teller(key, output, rows_of), output).persist(StorageLevel.DISK_ONLY)
    try:
        yield Told(decoded)
    finally:
        decoded.unpersist()


def _teller(
    key: tuple[str, ...], output: StructType, rows_of: Callable[[Iterable[Json]], Iterator[Row]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        records = (record for batch in batches for record in batch.to_pylist())
        for _, of_key in groupby(records, key=itemgetter(*key)):
            for row in rows_of(of_key):
                rows.append(row)
                if len(rows) == _ROWS_A_BATCH:
                    yield _batch(output, rows)
                    rows = []
        yield _batch(output, rows)

    return tell


def _batch(output: StructType, rows: list[Row]) -> pa.RecordBatch:
    schema = to_arrow_schema(output)
    columns = [[row.columns if row.table == field.name else None for row in rows] for field in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
