"""Records of the coordinators' topics into rows: a batch of Arrow columns in, one batch of columns a kind of record out.

Offset commits, the many, are read by columns (``offset_commits``). For the rest the decoders are those of
``protocol.coordinator_records``, called once a record inside a comprehension; all else goes by columns. Each kind has columns of
its own, so the records of a batch are told apart first and only the columns of their kind are built.

What cannot be decoded has a ``reason``, and its key and value as they were; every other row has nulls there. Nothing is dropped.
Of a classic group's members, the subscription and the assignment are read where the protocol is that of consumers: the topics
and the partitions; the rest (user data, partitions owned before) is left out.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from odradek.pipeline.offset_commits import offset_commits, topic_id
from odradek.pipeline.schema import GROUP_METADATA, OFFSET_COMMIT, RAW, TRANSACTION, TRANSACTION_STATE
from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    MalformedMessage,
    MemberMetadata,
    OffsetCommitKey,
    UnknownKey,
    decode_key,
    decode_transaction_key,
    decode_value,
)
from odradek.protocol.coordinator_records.fields import read_int16, read_int32, read_nullable_string, required
from odradek.protocol.coordinator_records.newer_groups import decode_newer

_UNDECODED = "undecoded"
_NEWER = "newer"
_CONSUMER = "consumer"
# By the number in the log, as DescribeTransactions says them.
STATUSES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)

DECODED = StructType(
    [
        *(field for field in RAW.fields if field.name not in {"date", "batch"}),
        StructField("reason", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)
"""A row of ``RAW``, or one of ``QUARANTINE``: which of the two, ``reason`` tells. The partition columns come later."""

_READ = ("topic", "partition", "offset", "timestamp", "key", "value")
_COORDINATES = _READ[:4]


class _Record(NamedTuple):
    """A record, decoded: its columns (``_COLUMNS_OF``), key and value; of one that could not be, the reason as its key."""

    columns: str
    kind: str | None
    key: Any
    value: Any


def decode(records: DataFrame) -> DataFrame:
    """What Spark's Kafka source gives, as ``DECODED``."""
    return records.select(*_READ).mapInArrow(decode_batches, DECODED)


def decode_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of ``_READ`` into batches of ``DECODED``; the order of records is not kept over kinds."""
    schema = to_arrow_schema(DECODED)
    for batch in batches:
        rest = yield from _by_columns(schema, batch)
        keys, values = rest.column("key").to_pylist(), rest.column("value").to_pylist()
        topics = rest.column("topic").to_pylist()
        records = [_decode_record(topic, key, value) for topic, key, value in zip(topics, keys, values, strict=True)]
        for columns in dict.fromkeys([record.columns for record in records]):
            places = [place for place, record in enumerate(records) if record.columns == columns]
            yield _rows(schema, columns, [records[place] for place in places], rest.take(pa.array(places, pa.int32())))


def _by_columns(schema: pa.Schema, batch: pa.RecordBatch) -> Generator[pa.RecordBatch, None, pa.RecordBatch]:
    """Yield the rows of a batch that can be decoded without a look at each; return the others."""
    keys = pc.if_else(pc.not_equal(batch.column("topic"), TRANSACTION_STATE), batch.column("key"), None)
    rows, columns = offset_commits(keys, batch.column("value"))
    if not len(rows):
        return batch
    is_left = np.ones(batch.num_rows, np.bool_)
    is_left[rows] = False
    read = batch.take(pa.array(rows)) if is_left.any() else batch
    built = {name: read.column(name) for name in _COORDINATES} | columns
    built |= {"kind": pa.repeat(OFFSET_COMMIT, len(rows)), "is_tombstone": read.column("value").is_null()}
    yield _batch(schema, built, len(rows))
    return batch.take(pa.array(np.flatnonzero(is_left)))


def _decode_record(topic: str, key: bytes | None, value: bytes | None) -> _Record:
    try:
        if key is None:
            raise MalformedMessage("a record without a key")  # noqa: TRY301  # one way to the quarantine for all reasons
        found = decode_transaction_key(key) if topic == TRANSACTION_STATE else decode_key(key)
        if isinstance(found, UnknownKey):
            if topic == TRANSACTION_STATE:
                raise MalformedMessage(f"a key of version {found.version} on {topic}")  # noqa: TRY301  # the same
            newer = decode_newer(key, value)
            return _Record(_NEWER, newer.kind, newer.key, newer.value)
        decoded = decode_value(found, value)
        if isinstance(found, OffsetCommitKey):
            return _Record(OFFSET_COMMIT, OFFSET_COMMIT, found, decoded)
        if isinstance(found, GroupMetadataKey):
            return _Record(GROUP_METADATA, GROUP_METADATA, found, decoded)
        status = getattr(decoded, "status", 0)
        if not 0 <= status < len(STATUSES):
            raise MalformedMessage(f"a transaction of status {status}")  # noqa: TRY301  # the same
    except MalformedMessage as failure:
        return _Record(_UNDECODED, None, str(failure), None)
    return _Record(TRANSACTION, TRANSACTION, found, decoded)


def _rows(schema: pa.Schema, columns: str, records: list[_Record], read: pa.RecordBatch) -> pa.RecordBatch:
    count = len(records)
    built: dict[str, Any] = {name: read.column(name) for name in _COORDINATES}
    if columns == _UNDECODED:
        built |= {"reason": [record.key for record in records], "key": read.column("key"), "value": read.column("value")}
    else:
        values = read.column("value")
        built |= {
            "kind": [record.kind for record in records],
            "key_version": _versions(read.column("key")),
            "value_version": _versions(values),
            "is_tombstone": values.is_null(),
        }
        built |= _COLUMNS_OF[columns](records)
    return _batch(schema, built, count)


def _batch(schema: pa.Schema, built: dict[str, Any], count: int) -> pa.RecordBatch:
    """Of these columns, the others null."""
    arrays = [_column(built[field.name], field.type) if field.name in built else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


def _versions(column: pa.Array) -> list[int | None]:
    return [None if data is None else int.from_bytes(data[:2], "big", signed=True) for data in column.to_pylist()]


def _fields(values: Sequence[Any], **names: str) -> dict[str, list[Any]]:
    """Columns by name, of the fields of ``values`` that they are made of; null where the value is."""
    return {column: [None if value is None else getattr(value, name) for value in values] for column, name in names.items()}


def _offset_commits(records: list[_Record]) -> dict[str, list[Any]]:
    values = [record.value for record in records]
    topic_ids = [None if value is None or value.topic_id is None else topic_id(value.topic_id.bytes) for value in values]
    return (
        _fields([record.key for record in records], group="group", commit_topic="topic", commit_partition="partition")
        | _fields(
            values,
            committed_offset="offset",
            leader_epoch="leader_epoch",
            metadata="metadata",
            commit_timestamp_ms="commit_timestamp_ms",
            expire_timestamp_ms="expire_timestamp_ms",
        )
        | {"topic_id": topic_ids}
    )


def _group_metadata(records: list[_Record]) -> dict[str, list[Any]]:
    values = [record.value for record in records]
    members = [
        None if value is None else [_member(member, is_consumer=value.protocol_type == _CONSUMER) for member in value.members]
        for value in values
    ]
    return (
        _fields([record.key for record in records], group="group")
        | _fields(
            values,
            protocol_type="protocol_type",
            generation="generation",
            protocol="protocol",
            leader="leader",
            state_timestamp_ms="current_state_timestamp_ms",
        )
        | {"members": members}
    )


def _transactions(records: list[_Record]) -> dict[str, list[Any]]:
    values = [record.value for record in records]
    partitions = [
        None if value is None else [{"topic": topic, "partition": partition} for topic, partition in sorted(value.partitions)]
        for value in values
    ]
    return (
        _fields([record.key for record in records], transactional_id="transactional_id")
        | _fields(
            values,
            producer_id="producer_id",
            producer_epoch="producer_epoch",
            timeout_ms="timeout_ms",
            last_update_ms="last_update_ms",
            start_ms="start_ms",
            previous_producer_id="previous_producer_id",
            next_producer_id="next_producer_id",
            client_transaction_version="client_transaction_version",
        )
        | {"status": [None if value is None else STATUSES[value.status] for value in values], "partitions": partitions}
    )


def _newer(records: list[_Record]) -> dict[str, list[Any]]:
    return {
        "group": [record.key["group_id"] for record in records],
        "fields": [json.dumps(record.key | (record.value or {}), separators=(",", ":")) for record in records],
    }


_COLUMNS_OF: dict[str, Callable[[list[_Record]], dict[str, list[Any]]]] = {
    OFFSET_COMMIT: _offset_commits,
    GROUP_METADATA: _group_metadata,
    TRANSACTION: _transactions,
    _NEWER: _newer,
}


def _member(member: MemberMetadata, *, is_consumer: bool) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout": member.rebalance_timeout_ms,
        "session_timeout": member.session_timeout_ms,
        "topics": _topics(member.subscription) if is_consumer else None,
        "assignment": _assignment(member.assignment) if is_consumer else None,
    }


# The members of a group say the same in every generation, and mostly the same as each other.
@lru_cache(maxsize=4096)
def _topics(subscription: bytes) -> list[str] | None:
    """ConsumerProtocolSubscription: int16 version | array of string topics | ... None where it is something else."""
    try:
        _, position = read_int16(subscription, 0)
        count, position = read_int32(subscription, position)
        topics = []
        for _ in range(count):
            topic, position = read_nullable_string(subscription, position)
            topics.append(required(topic))
    except MalformedMessage:
        return None
    return topics


@lru_cache(maxsize=4096)
def _assignment(data: bytes) -> list[dict[str, Any]] | None:
    """ConsumerProtocolAssignment: int16 version | array of (string topic, array of int32 partitions) | ...

    No bytes at all are no partitions. None where it is something else.
    """
    if not data:
        return []
    try:
        _, position = read_int16(data, 0)
        count, position = read_int32(data, position)
        assigned = []
        for _ in range(count):
            topic, position = read_nullable_string(data, position)
            size, position = read_int32(data, position)
            partitions = []
            for _ in range(size):
                partition, position = read_int32(data, position)
                partitions.append(partition)
            assigned.append({"topic": required(topic), "partitions": partitions})
    except MalformedMessage:
        return None
    return assigned
