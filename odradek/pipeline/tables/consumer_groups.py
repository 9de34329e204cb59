"""Consumer groups (KIP-848) in Spark: each group's records pass through its ``GroupStory``, in order, and become rows.

A row of the output belongs to one table; the columns of other tables are null. The output is computed once, and each table's
writer reads it. The state of a group is a row, too, the last one of the group: the columns of ``groups_now``, and the story's
own state.

The records of a group are in one partition, and are read as a stream: memory holds one story and one batch.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType, TimestampType

from odradek.pipeline.schema import (
    ASSIGNMENT,
    CONSUMER_GROUP_PREFIX,
    GROUP_GENERATIONS,
    GROUP_METADATA,
    GROUPS_NOW,
    MEMBER_CHANGES,
    PARTITION_MOVES,
)
from odradek.pipeline.tables.consumer_story import GroupStory, Record, Row
from odradek.pipeline.tables.files import by_key

STATE = StructType([*GROUPS_NOW.fields, StructField("_story", StringType())])
CHANGES = StructType(
    [
        *MEMBER_CHANGES.fields,
        # For the comparison with commits: the partitions of a member that is gone, and the time of its last record.
        StructField("assignment", ASSIGNMENT),
        StructField("session_timeout", IntegerType()),
        StructField("_since", TimestampType()),
    ]
)
_TOLD = {
    "group_generations": GROUP_GENERATIONS,
    "member_changes": CHANGES,
    "partition_moves": PARTITION_MOVES,
    "groups_now": STATE,
}
OUTPUT = StructType([StructField(name, schema) for name, schema in _TOLD.items()])
_ROWS_A_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ConsumerGroups:
    """The output of the stories in a pass."""

    _decoded: DataFrame

    def rows(self, name: str) -> DataFrame:
        """Return the rows of this table."""
        return self._decoded.where(f.col(name).isNotNull()).select(f"{name}.*")


@contextmanager
def tell(raw: DataFrame, before: DataFrame, names: Mapping[str, str]) -> Iterator[ConsumerGroups]:
    """Yield the rows of new ``RAW`` records after the ``STATE``, persisted for the ``with``. ``names`` are topics by id."""
    is_theirs = f.col("kind").startswith(CONSUMER_GROUP_PREFIX)
    # A classic group that becomes a consumer group is deleted as a classic one.
    is_theirs |= (f.col("kind") == GROUP_METADATA) & f.col("is_tombstone")
    new = raw.where(is_theirs).select(
        "group",
        f.col("partition").alias("record_partition"),
        f.col("offset").alias("record_offset"),
        f.unix_micros("timestamp").alias("at_us"),
        "kind",
        "is_tombstone",
        "fields",
    )
    states = before.select("group", "record_partition", "record_offset", "_story")
    rows = by_key(new.unionByName(states, allowMissingColumns=True), "group")
    rows = rows.sortWithinPartitions("group", "record_partition", "record_offset")
    told = rows.mapInArrow(_teller(dict(names)), OUTPUT).persist(StorageLevel.DISK_ONLY)
    try:
        yield ConsumerGroups(told)
    finally:
        told.unpersist()


def _teller(names: dict[str, str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        records = (record for batch in batches for record in batch.to_pylist())
        for group, of_group in groupby(records, key=itemgetter("group")):
            for row in _rows(group, of_group, names):
                rows.append(row)
                if len(rows) == _ROWS_A_BATCH:
                    yield _batch(rows)
                    rows = []
        yield _batch(rows)

    return told


def _rows(group: str, records: Iterable[dict[str, Any]], names: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows from the records of a group. The first record may be the group's state."""
    story = GroupStory(group, names)
    for each in records:
        if each["_story"] is not None:
            story = GroupStory.resumed(group, names, each["_story"])
            continue
        # A tombstone of a classic group has no fields.
        fields = json.loads(each["fields"] or "{}")
        where = each["record_partition"], each["record_offset"]
        yield from story.take(Record(each["kind"], each["is_tombstone"], fields, each["at_us"], *where))
    state = story.state()
    if state is not None:
        now = story.now()
        yield Row(now.table, now.columns | {"_story": state})


def _batch(rows: list[Row]) -> pa.RecordBatch:
    schema = to_arrow_schema(OUTPUT)
    columns = [[row.columns if row.table == field.name else None for row in rows] for field in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
