"""The columns of a warehouse, as Spark types: one definition for writers and readers.

Ingest writes a record of a coordinator's topic (``TOPICS``) as one row of ``RAW``, whatever its kind: its coordinates, its kind,
and the fields of that kind. The fields of other kinds are null; a tombstone has only the fields of its key. Columns that end in
``_ms`` are as in the record: ms since the epoch, -1 for none.

``odradek.pipeline.tables.schema`` has the columns of the tables that are built from these.

A DataFrame of few rows, or none, is held by Spark itself (``local_rows``). From a list Spark would make an RDD of Python's, and
start a Python worker for each reading, which takes a quarter of a second. The rows of an Arrow table become part of the plan, and
Spark prunes the plan if there are none.
"""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)


def local_rows(spark: SparkSession, schema: StructType | str, rows: Sequence[tuple[Any, ...]] = ()) -> DataFrame:
    """Return these rows, as ``schema``. Raises pyarrow.ArrowInvalid for a value that does not fit its column."""
    struct = cast("StructType", StructType.fromDDL(schema)) if isinstance(schema, str) else schema
    fields = to_arrow_schema(struct)
    columns = zip(*rows, strict=True) if rows else [()] * len(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    frame: DataFrame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=fields), struct)
    return frame


CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)

# The directories of a warehouse.
RAW_DIR = "raw"
QUARANTINE_DIR = "quarantine"
END_OFFSETS_DIR = "end_offsets"
TOPIC_IDS_DIR = "topic_ids"
TABLES_DIR = "tables"
STATE_DIR = "state"
FINDINGS_DIR = "findings"
CHECKPOINTS_DIR = "checkpoints"

OFFSET_COMMIT = "offset_commit"
GROUP_METADATA = "group_metadata"
TRANSACTION = "transaction"
SHARE_SNAPSHOT = "share_snapshot"
SHARE_UPDATE = "share_update"
# Further kinds: those of ``odradek.protocol.coordinator_records.newer_groups``, ``consumer_group_metadata`` and so on.
CONSUMER_GROUP_PREFIX = "consumer_group_"
SHARE_GROUP_PREFIX = "share_group_"
STREAMS_GROUP_PREFIX = "streams_group_"
MODERN_GROUP_PREFIXES = (CONSUMER_GROUP_PREFIX, SHARE_GROUP_PREFIX)
# Records of these kinds name topics by id.
WITH_TOPIC_IDS = (*MODERN_GROUP_PREFIXES, SHARE_SNAPSHOT, SHARE_UPDATE)

# The types of groups in the tables, by Kafka's names.
CLASSIC, CONSUMER, SHARE = "Classic", "Consumer", "Share"


def struct(base: StructType | None = None, /, **fields: DataType) -> StructType:
    """Return columns by name, in this order, after those of ``base``; all are nullable."""
    return StructType([*(base or ()), *(StructField(name, kind) for name, kind in fields.items())])


STRING, INT, LONG, TIME, BOOLEAN = StringType(), IntegerType(), LongType(), TimestampType(), BooleanType()
_PARTITION = struct(topic=STRING, partition=INT)
ASSIGNMENT = ArrayType(struct(topic=STRING, partitions=ArrayType(INT)))
# ``topics`` and ``assignment`` are null if the group's protocol type is not that of consumers, or if the bytes cannot be decoded.
MEMBER = struct(
    member_id=STRING,
    group_instance_id=STRING,
    client_id=STRING,
    client_host=STRING,
    rebalance_timeout=INT,
    session_timeout=INT,
    topics=ArrayType(STRING),
    assignment=ASSIGNMENT,
)
_COORDINATES = {"topic": STRING, "partition": INT, "offset": LONG, "timestamp": TIME}

RAW = struct(
    **_COORDINATES,
    kind=STRING,
    key_version=INT,
    value_version=INT,
    is_tombstone=BOOLEAN,
    group=STRING,
    # offset_commit
    commit_topic=STRING,
    commit_partition=INT,
    committed_offset=LONG,
    leader_epoch=INT,
    metadata=STRING,
    commit_timestamp_ms=LONG,
    expire_timestamp_ms=LONG,
    topic_id=STRING,
    # group_metadata
    protocol_type=STRING,
    generation=INT,
    protocol=STRING,
    leader=STRING,
    state_timestamp_ms=LONG,
    members=ArrayType(MEMBER),
    # transaction
    transactional_id=STRING,
    producer_id=LONG,
    producer_epoch=INT,
    timeout_ms=INT,
    status=STRING,
    partitions=ArrayType(_PARTITION),
    last_update_ms=LONG,
    start_ms=LONG,
    previous_producer_id=LONG,
    next_producer_id=LONG,
    client_transaction_version=INT,
    # For kinds without columns of their own: key and value as one JSON object.
    fields=STRING,
    date=DateType(),
    batch=LONG,
)
"""Partitioned by ``topic``, ``date`` (the UTC day of ``timestamp``), and ``batch`` (the micro-batch of the record)."""

QUARANTINE = struct(**_COORDINATES, reason=STRING, key=BinaryType(), value=BinaryType(), date=DateType(), batch=LONG)
"""Partitioned like ``RAW``."""

END_OFFSETS = struct(topic=STRING, partition=INT, end_offset=LONG, sampled_at=TIME)
"""``end_offset`` is the high watermark. A partition that groups have committed to has a row for each micro-batch, and rows for
the times of the micro-batch's records (``ingest``)."""

TOPIC_IDS = struct(topic=STRING, topic_id=STRING)
"""The topics that existed when records with ids in place of names were ingested (``WITH_TOPIC_IDS``). May have duplicates."""

PARTITIONED_BY = ("topic", "date", "batch")


def read_raw(spark: SparkSession, warehouse: str) -> DataFrame:
    """Return every decoded record, as ``RAW``; no rows before the first ingest."""
    return read_parquet(spark, f"{warehouse}/{RAW_DIR}", RAW)


def read_quarantine(spark: SparkSession, warehouse: str) -> DataFrame:
    """Return every record that could not be decoded, as ``QUARANTINE``."""
    return read_parquet(spark, f"{warehouse}/{QUARANTINE_DIR}", QUARANTINE)


def read_end_offsets(spark: SparkSession, warehouse: str) -> DataFrame:
    """Return every sample, as ``END_OFFSETS``."""
    return read_parquet(spark, f"{warehouse}/{END_OFFSETS_DIR}", END_OFFSETS)


def read_topic_ids(spark: SparkSession, warehouse: str) -> DataFrame:
    """Return the known topics, as ``TOPIC_IDS``."""
    return read_parquet(spark, f"{warehouse}/{TOPIC_IDS_DIR}", TOPIC_IDS).distinct()


def topic_of_id(topic_id: str) -> str:
    """Return a placeholder for the name of a topic of which only the id is known. No topic can have this name."""
    return f"unknown:{topic_id}"


def read_parquet(spark: SparkSession, path: str, schema: StructType | str) -> DataFrame:
    """Return the files of a directory, as ``schema``; no rows if the directory does not exist yet."""
    try:
        return spark.read.schema(schema).parquet(path)
    except AnalysisException as failure:
        if failure.getCondition() != "PATH_NOT_FOUND":
            raise
        return local_rows(spark, schema)
