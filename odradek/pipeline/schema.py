"""The columns of a warehouse, as Spark types: one definition for writers and readers.

Ingest writes a record of ``__consumer_offsets`` or ``__transaction_state`` as one row of ``RAW``, whatever its kind: its
coordinates, its kind, and the fields of that kind. The fields of other kinds are null; a tombstone has only the fields of its
key. Columns that end in ``_ms`` are as in the record: ms since the epoch, -1 for none.

Tables are built from ``raw``:

    tables/NAME/batch=N/*.parquet    history: the new rows of pass N; append-only
    state/NAME/batch=N/*.parquet     snapshots: the state after pass N; replaced at each pass

Read either with ``odradek.pipeline.tables.read_table(spark, warehouse, name)``. It returns exactly the columns below, in this
order; no rows before the first pass; no rows of a pass that is not done; rows in no particular order. A history table has the
rows of all passes, a snapshot those of the newest pass.

In tables, ``at`` is always the broker's timestamp of the record behind the row. ``record_partition`` and ``record_offset`` are
that record's coordinates in its topic: rows of one group, or of one transactional id, are ordered by ``record_offset``, also if
their ``at`` is the same. Durations are in the unit that ends their name. Unknown values are null.

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
    DoubleType,
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
TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)

# The directories of a warehouse.
RAW_DIR = "raw"
QUARANTINE_DIR = "quarantine"
END_OFFSETS_DIR = "end_offsets"
TOPIC_IDS_DIR = "topic_ids"
TABLES_DIR = "tables"
FINDINGS_DIR = "findings"
CHECKPOINTS_DIR = "checkpoints"

OFFSET_COMMIT = "offset_commit"
GROUP_METADATA = "group_metadata"
TRANSACTION = "transaction"
# Further kinds: those of ``odradek.protocol.coordinator_records.newer_groups``, ``consumer_group_metadata`` and so on.
CONSUMER_GROUP_PREFIX = "consumer_group_"

# The types of groups in the tables, by Kafka's names.
CLASSIC, CONSUMER = "Classic", "Consumer"


def struct(**fields: DataType) -> StructType:
    """Return columns by name, in this order; all are nullable."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_STRING, _INT, _LONG, _TIME = StringType(), IntegerType(), LongType(), TimestampType()
_PARTITION = struct(topic=_STRING, partition=_INT)
ASSIGNMENT = ArrayType(struct(topic=_STRING, partitions=ArrayType(_INT)))
# ``topics`` and ``assignment`` are null if the group's protocol type is not that of consumers, or if the bytes cannot be decoded.
MEMBER = struct(
    member_id=_STRING,
    group_instance_id=_STRING,
    client_id=_STRING,
    client_host=_STRING,
    rebalance_timeout=_INT,
    session_timeout=_INT,
    topics=ArrayType(_STRING),
    assignment=ASSIGNMENT,
)
_COORDINATES = {"topic": _STRING, "partition": _INT, "offset": _LONG, "timestamp": TimestampType()}

RAW = struct(
    **_COORDINATES,
    kind=_STRING,
    key_version=_INT,
    value_version=_INT,
    is_tombstone=BooleanType(),
    group=_STRING,
    # offset_commit
    commit_topic=_STRING,
    commit_partition=_INT,
    committed_offset=_LONG,
    leader_epoch=_INT,
    metadata=_STRING,
    commit_timestamp_ms=_LONG,
    expire_timestamp_ms=_LONG,
    topic_id=_STRING,
    # group_metadata
    protocol_type=_STRING,
    generation=_INT,
    protocol=_STRING,
    leader=_STRING,
    state_timestamp_ms=_LONG,
    members=ArrayType(MEMBER),
    # transaction
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    timeout_ms=_INT,
    status=_STRING,
    partitions=ArrayType(_PARTITION),
    last_update_ms=_LONG,
    start_ms=_LONG,
    previous_producer_id=_LONG,
    next_producer_id=_LONG,
    client_transaction_version=_INT,
    # For kinds without columns of their own: key and value as one JSON object.
    fields=_STRING,
    date=DateType(),
    batch=_LONG,
)
"""Partitioned by ``topic``, ``date`` (the UTC day of ``timestamp``), and ``batch`` (the micro-batch of the record)."""

QUARANTINE = struct(**_COORDINATES, reason=_STRING, key=BinaryType(), value=BinaryType(), date=DateType(), batch=_LONG)
"""Partitioned like ``RAW``."""

END_OFFSETS = struct(topic=_STRING, partition=_INT, end_offset=_LONG, sampled_at=TimestampType())
"""``end_offset`` is the high watermark. A partition that groups have committed to has a row for each micro-batch, and rows for
the times of the micro-batch's records (``ingest``)."""

TOPIC_IDS = struct(topic=_STRING, topic_id=_STRING)
"""The topics that existed when records of consumer groups were ingested: those records have only ids. May have duplicates."""

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


_RECORD: dict[str, DataType] = {"record_partition": _INT, "record_offset": _LONG}
_PARTITIONS = ArrayType(struct(topic=_STRING, partition=_INT))

GROUP_GENERATIONS = struct(
    group=_STRING,
    generation=_INT,
    protocol_type=_STRING,
    protocol=_STRING,
    leader=_STRING,
    members=ArrayType(_STRING),
    member_count=_INT,
    assignment=ArrayType(struct(member_id=_STRING, topic=_STRING, partitions=ArrayType(_INT))),
    state=_STRING,
    at=_TIME,
    since_last_ms=_LONG,
    sync_ms=_LONG,
    partition=_INT,
    offset=_LONG,
    reason=_STRING,
    group_type=_STRING,
    why=_STRING,
)
"""A row for each generation of a group. ``members`` are sorted ids. ``assignment`` is sorted, and only of groups of consumers.

``state`` is Stable, Reconciling or Empty. ``since_last_ms``: since the generation before. ``sync_ms``: from the end of the join
phase to the assignment; how long the join phase took is not in the log. ``reason``: ``first`` (the first one known), ``empty``
(everyone has gone), ``members`` (somebody came or went), ``assignment`` (the same members once more). ``partition`` and
``offset`` are the record's. ``group_type`` is Classic or Consumer.

A generation of a consumer group (KIP-848) is an epoch of its target assignment. ``assignment`` is the target;
``partition_moves`` shows when members reach it. ``sync_ms``: from the rise of the epoch to its assignment. ``protocol``:
the assignor, null if no member names one. ``why``: the changes; null for a classic group, whose log does not have them.
"""

MEMBER_CHANGES = struct(
    group=_STRING,
    generation=_INT,
    at=_TIME,
    member_id=_STRING,
    group_instance_id=_STRING,
    client_id=_STRING,
    client_host=_STRING,
    change=_STRING,
    for_left=_STRING,
    for_expired=_STRING,
    **_RECORD,
)
"""A row for each member that joined or went. ``generation`` is the first with or without it; in a consumer group, the epoch that
it raised.

``change``: ``joined``; ``left`` or ``expired``, where the log knows which; ``gone``, where it does not; ``bounced_static``
(another ``member_id``, here the new one, under the same ``group_instance_id``); ``away_static`` (a static member of a consumer
group that left for now, and is a member still). ``for_left`` and ``for_expired``: what speaks for either; null if nothing does.
"""

PARTITION_MOVES = struct(
    group=_STRING,
    generation=_INT,
    at=_TIME,
    topic=_STRING,
    partition=_INT,
    from_member=_STRING,
    to_member=_STRING,
    from_client_id=_STRING,
    to_client_id=_STRING,
    rebalance_kind=_STRING,
    kept_ms=_LONG,
    **_RECORD,
)
"""A row for each change of a partition's owner. Null means no owner: ``from_member`` in a group's first generation, or the first
after it was empty, and ``to_member`` when it has become empty. ``rebalance_kind``: eager or cooperative; a cooperative
move, given up in one generation and taken in the next, is one row, of the generation it was taken in.

A move in a consumer group is cooperative, and of the record that says that the new owner has the partition. ``kept_ms``: from the
target assignment without it until the old owner gave it up; null where that one was not asked, as if it is gone, and of classic
groups.
"""

OFFSET_COMMITS = struct(
    group=_STRING,
    topic=_STRING,
    partition=_INT,
    at=_TIME,
    committed_offset=_LONG,
    previous_offset=_LONG,
    delta=_LONG,
    seconds_since=DoubleType(),
    rate_per_s=DoubleType(),
    kind=_STRING,
    metadata=_STRING,
    leader_epoch=_INT,
    **_RECORD,
)
"""A row for each commit. ``kind``: first, progress, repeat (the same offset), backward, deleted (``committed_offset`` is null).

``previous_offset``, ``delta`` and ``seconds_since`` are against the commit before, null for ``first``; ``rate_per_s`` is null
where no time has passed.
"""

LAG = struct(group=_STRING, topic=_STRING, partition=_INT, sampled_at=_TIME, end_offset=_LONG, committed_offset=_LONG, lag=_LONG)
"""A row for each sample of ``end_offsets`` and each group with a commit by then: the last commit, and its lag."""

TRANSACTIONS = struct(
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    start_at=_TIME,
    ongoing_at=_TIME,
    prepared_at=_TIME,
    completed_at=_TIME,
    outcome=_STRING,
    partitions=_PARTITIONS,
    partition_count=_INT,
    ongoing_ms=_LONG,
    prepare_ms=_LONG,
    total_ms=_LONG,
    timeout_ms=_INT,
    **_RECORD,
)
"""A row for each ended transaction. ``outcome``: committed, aborted, timed_out, fenced.

``start_at`` is what the coordinator says; ``ongoing_at``, ``prepared_at``, ``completed_at`` are the times of its first records in
these states. ``ongoing_ms`` is from start to prepared, ``prepare_ms`` from there to completed, ``total_ms`` their sum.
``producer_id`` and ``producer_epoch`` are those that it was written with. The coordinates are those of the completing record.
"""

OPEN_TRANSACTIONS = struct(
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    status=_STRING,
    start_at=_TIME,
    last_update_at=_TIME,
    partitions=_PARTITIONS,
    timeout_ms=_INT,
    **_RECORD,
)
"""A row for each open transaction. ``status``: Ongoing, PrepareCommit, PrepareAbort."""

GROUPS_NOW = struct(
    group=_STRING,
    protocol_type=_STRING,
    generation=_INT,
    protocol=_STRING,
    leader=_STRING,
    members=ArrayType(MEMBER),
    state=_STRING,
    group_type=_STRING,
    at=_TIME,
    **_RECORD,
)
"""A row for each existing group, classic or consumer, as of its newest record. Members of a consumer group have their present
partitions as ``assignment``, and no ``session_timeout``, which is not in the log.
"""

OFFSETS_NOW = struct(
    group=_STRING,
    topic=_STRING,
    partition=_INT,
    committed_offset=_LONG,
    leader_epoch=_INT,
    metadata=_STRING,
    at=_TIME,
    **_RECORD,
)
"""A row for each group and partition: the offset that is committed now."""

TRANSACTIONAL_IDS_NOW = struct(
    transactional_id=_STRING,
    producer_id=_LONG,
    producer_epoch=_INT,
    timeout_ms=_INT,
    status=_STRING,
    partitions=_PARTITIONS,
    start_at=_TIME,
    last_update_at=_TIME,
    **_RECORD,
)
"""A row for each existing transactional id: its newest record. ``status`` is as in DescribeTransactions."""

HISTORY = {
    "group_generations": GROUP_GENERATIONS,
    "member_changes": MEMBER_CHANGES,
    "partition_moves": PARTITION_MOVES,
    "offset_commits": OFFSET_COMMITS,
    "lag": LAG,
    "transactions": TRANSACTIONS,
}
SNAPSHOTS = {
    "open_transactions": OPEN_TRANSACTIONS,
    "groups_now": GROUPS_NOW,
    "offsets_now": OFFSETS_NOW,
    "transactional_ids_now": TRANSACTIONAL_IDS_NOW,
}
SAMPLES = "end_offsets"
TABLES = HISTORY | SNAPSHOTS | {SAMPLES: END_OFFSETS}
"""Every table that ``read_table`` knows, by name. ``end_offsets`` has the samples that the passes have read."""

STATE_DIR = "state"
