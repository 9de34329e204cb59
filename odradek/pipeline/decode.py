"""Records of the coordinators' topics into rows: a batch of Arrow columns in, one batch of columns for each kind of record out.

Records of one kind and version are read together, by columns: offset commits, generations of classic groups and states of
transactional ids (``kinds``), and the newer groups' records (``newer_groups``). Unusual records (a text that is not UTF-8, an
array of more than 128 elements, an unknown tagged field) are read one by one into the same rows (``one_by_one``). So are
malformed records, in order to find the reason.

A record that cannot be decoded keeps its key and value and has a ``reason``; all other rows have nulls in these columns. No
record is dropped.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from odradek.pipeline.columns import Column, Integers
from odradek.pipeline.group_metadata import GROUPS
from odradek.pipeline.kinds import read_rows
from odradek.pipeline.newer_groups import read_newer
from odradek.pipeline.offset_commits import OFFSET_COMMITS
from odradek.pipeline.one_by_one import read_one_by_one
from odradek.pipeline.schema import RAW, TRANSACTION_STATE
from odradek.pipeline.transactions import TRANSACTIONS

DECODED = StructType(
    [
        *(field for field in RAW.fields if field.name not in {"date", "batch"}),
        StructField("reason", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)
"""A row of ``RAW``; or of ``QUARANTINE``, if it has a ``reason``. The partition columns come later."""

_READ = ("topic", "partition", "offset", "timestamp", "key", "value")
_COORDINATES = _READ[:4]
_KINDS = (OFFSET_COMMITS, GROUPS, TRANSACTIONS)


def decode(records: DataFrame) -> DataFrame:
    """Return the rows of Spark's Kafka source as ``DECODED``."""
    return records.select(*_READ).mapInArrow(decode_batches, DECODED)


def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode batches of ``_READ`` into batches of ``DECODED``. Order is kept within a kind of record, not between kinds."""
    schema = to_arrow_schema(DECODED)
    for batch in batches:
        is_left = np.ones(batch.num_rows, np.bool_)
        for rows, columns in _read_by_columns(batch):
            is_left[rows] = False
            yield _batch(schema, _take(batch, rows), columns)
        rest = _take(batch, np.flatnonzero(is_left))
        for rows, columns in read_one_by_one(rest):
            yield _batch(schema, _take(rest, rows), columns)


def _read_by_columns(batch: pa.RecordBatch) -> Iterator[tuple[Integers, dict[str, Any]]]:
    """Yield, for each kind, the rows that could be read by columns, and the columns of the kind."""
    key, value = Column.of(batch.column("key")), Column.of(batch.column("value"))
    key_versions, value_versions = key.versions(), value.versions()
    topics = batch.column("topic")
    is_left = topics.is_valid().to_numpy(zero_copy_only=False)
    is_on_transaction_state = pc.fill_null(pc.equal(topics, TRANSACTION_STATE), False).to_numpy(zero_copy_only=False)
    for kind in _KINDS:
        is_of_kind = np.isin(key_versions, kind.key_versions) & (is_on_transaction_state == kind.is_on_transaction_state)
        for version in kind.value_versions:
            # A tombstone has no version. It is read together with the first version.
            is_candidate = is_left & is_of_kind & (value.is_null | (value_versions == version))
            if not is_candidate.any():
                continue
            rows, columns = read_rows(kind, version, key, value, np.flatnonzero(is_candidate))
            is_left[rows] = False
            if len(rows):
                yield rows, columns | {"kind": pa.repeat(kind.name, len(rows)), "is_tombstone": pa.array(value.is_null[rows])}
    yield from read_newer(key, value, key_versions, is_left & ~is_on_transaction_state)


def _take(batch: pa.RecordBatch, rows: Integers) -> pa.RecordBatch:
    """Return these rows of the batch; their numbers ascend."""
    return batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))


def _batch(schema: pa.Schema, read: pa.RecordBatch, columns: dict[str, Any]) -> pa.RecordBatch:
    """Return a batch of these columns and the records' coordinates; all other columns are null."""
    count = read.num_rows
    built = {name: read.column(name) for name in _COORDINATES} | columns
    arrays = [_column(built[field.name], field.type) if field.name in built else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
