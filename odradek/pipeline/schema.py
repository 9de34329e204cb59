"""The columns of what ingest writes, as Spark types: one definition for those who write and those who read.

A record of ``__consumer_offsets`` or ``__transaction_state`` is one row of ``RAW``, whatever its kind: its coordinates, its kind,
and the fields of that kind; the fields of other kinds are null, and so are a tombstone's beyond its key. Times that end in
``_ms`` are as the record has them: ms since the epoch, -1 for none.
"""

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

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)

# The directories of a warehouse.
RAW_DIR = "raw"
QUARANTINE_DIR = "quarantine"
END_OFFSETS_DIR = "end_offsets"
TABLES_DIR = "tables"
FINDINGS_DIR = "findings"
CHECKPOINTS_DIR = "checkpoints"

OFFSET_COMMIT = "offset_commit"
GROUP_METADATA = "group_metadata"
TRANSACTION = "transaction"
UNKNOWN = "unknown"


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_STRING, _INT, _LONG = StringType(), IntegerType(), LongType()
_PARTITION = _struct(topic=_STRING, partition=_INT)
ASSIGNMENT = ArrayType(_struct(topic=_STRING, partitions=ArrayType(_INT)))
# ``topics`` and ``assignment`` are null where the group's protocol is not that of consumers, or a member's is one of its own.
MEMBER = _struct(
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

RAW = _struct(
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
    client_transaction_version=_INT,
    # The kinds that have no columns of their own: key and value as one JSON object.
    fields=_STRING,
    date=DateType(),
)
"""Partitioned by ``topic`` and ``date``, the UTC day of ``timestamp``."""

QUARANTINE = _struct(**_COORDINATES, reason=_STRING, key=BinaryType(), value=BinaryType(), date=DateType())
"""Partitioned like ``RAW``."""

END_OFFSETS = _struct(topic=_STRING, partition=_INT, end_offset=_LONG, sampled_at=TimestampType())
"""``end_offset`` is the high watermark. A partition that groups have committed to has a row a micro-batch."""
