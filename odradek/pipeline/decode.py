"""Records of the coordinators' topics into rows: a batch of Arrow columns in, one batch of columns for each kind of record out.

Records of one kind and version are read together, by columns: offset commits, generations of classic groups and states of
transactional ids (``kinds``), and the records of newer groups and of share partitions (``newer_groups``). Unusual records (a text
that is not UTF-8, an array of more than 128 elements, an unknown tagged field) are read one by one into the same rows. So are
malformed records, in order to find the reason.

One by one, the decoders are those of ``protocol.coordinator_records``. Each kind has columns of its own: records are grouped by
kind first, and only the columns of their kind are built. The members' subscriptions and assignments are decoded if the group's
protocol type is that of consumers.

A record that cannot be decoded keeps its key and value and has a ``reason``; all other rows have nulls in these columns. No
record is dropped.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructType

from odradek.pipeline.columns import Column, Integers
from odradek.pipeline.kinds import (
    GROUPS,
    OFFSET_COMMITS,
    STATUSES,
    TRANSACTIONS,
    assigned_partitions,
    read_rows,
    subscribed_topics,
    topic_id,
)
from odradek.pipeline.newer_groups import read_newer
from odradek.pipeline.schema import (
    CONSUMER_OFFSETS,
    GROUP_METADATA,
    OFFSET_COMMIT,
    RAW,
    SHARE_GROUP_STATE,
    STRING,
    TRANSACTION,
    TRANSACTION_STATE,
    struct,
)
from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    MalformedMessage,
    MemberMetadata,
    OffsetCommitKey,
    TransactionLogKey,
    UnknownKey,
    decode_key,
    decode_transaction_key,
    decode_value,
)
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from odradek.protocol.coordinator_records.newer_groups import KINDS, SHARE_STATE_KINDS, decode_newer
from odradek.protocol.coordinator_records.newer_groups import Kind as NewerKind

_UNDECODED = "undecoded"
_NEWER = "newer"


class _Record(NamedTuple):
    """A decoded record: its columns (``_COLUMNS_OF``), key and value. If it is malformed, ``key`` is the reason."""

    columns: str
    kind: str | None
    key: Any
    value: Any


def read_one_by_one(batch: pa.RecordBatch) -> Iterator[tuple[Integers, dict[str, Any]]]:
    """Yield the rows of each kind in a batch, and the columns of that kind.

    Rows that cannot be decoded have the columns ``reason``, ``key`` and ``value``, the latter two unchanged.
    """
    keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
    topics = batch.column("topic").to_pylist()
    records = [_decode_record(topic, key, value) for topic, key, value in zip(topics, keys, values, strict=True)]
    for columns in dict.fromkeys([record.columns for record in records]):
        places = [place for place, record in enumerate(records) if record.columns == columns]
        of_kind = [records[place] for place in places]
        yield np.array(places, np.int64), _columns(columns, of_kind, [keys[at] for at in places], [values[at] for at in places])


def _columns(columns: str, records: list[_Record], keys: list[bytes | None], values: list[bytes | None]) -> dict[str, Any]:
    if columns == _UNDECODED:
        return {"reason": [record.key for record in records], "key": keys, "value": values}
    return {
        "kind": [record.kind for record in records],
        "key_version": _versions(keys),
        "value_version": _versions(values),
        "is_tombstone": [value is None for value in values],
    } | _COLUMNS_OF[columns](records)


def _decode_record(topic: str, key: bytes | None, value: bytes | None) -> _Record:
    try:
        if key is None:
            raise MalformedMessage("the record has no key")  # noqa: TRY301  # one way to the quarantine for all reasons
        if topic == SHARE_GROUP_STATE:
            return _decode_newer(key, value, SHARE_STATE_KINDS)
        found = decode_transaction_key(key) if topic == TRANSACTION_STATE else decode_key(key)
        if isinstance(found, UnknownKey):
            if topic == TRANSACTION_STATE:
                raise MalformedMessage(f"a key on {topic} has version {found.version}")  # noqa: TRY301  # the same
            return _decode_newer(key, value, KINDS)
        decoded = decode_value(found, value)
        if isinstance(found, OffsetCommitKey):
            return _Record(OFFSET_COMMIT, OFFSET_COMMIT, found, decoded)
        if isinstance(found, GroupMetadataKey):
            return _Record(GROUP_METADATA, GROUP_METADATA, found, decoded)
        if isinstance(found, TransactionLogKey):
            status = getattr(decoded, "status", 0)
            if not 0 <= status < len(STATUSES):
                raise MalformedMessage(f"a transaction has status {status}")  # noqa: TRY301  # the same
            return _Record(TRANSACTION, TRANSACTION, found, decoded)
        raise MalformedMessage(f"a {type(found).__name__} has no columns")  # noqa: TRY301  # the same
    except MalformedMessage as failure:
        return _Record(_UNDECODED, None, str(failure), None)


def _decode_newer(key: bytes, value: bytes | None, kinds: Mapping[int, NewerKind]) -> _Record:
    newer = decode_newer(key, value, kinds)
    return _Record(_NEWER, newer.kind, newer.key, newer.value)


def _versions(column: list[bytes | None]) -> list[int | None]:
    return [None if data is None else int.from_bytes(data[:2], "big", signed=True) for data in column]


def _fields(values: Sequence[Any], *names: str, **renamed: str) -> dict[str, list[Any]]:
    """Return columns of the fields with these ``names``, and of ``renamed`` ones by column; null for a null value."""
    columns = {name: name for name in names} | renamed
    return {column: [None if value is None else getattr(value, name) for value in values] for column, name in columns.items()}


def _offset_commits(records: list[_Record]) -> dict[str, list[Any]]:
    values = [record.value for record in records]
    topic_ids = [None if value is None or value.topic_id is None else topic_id(value.topic_id.bytes) for value in values]
    return (
        _fields([record.key for record in records], "group", commit_topic="topic", commit_partition="partition")
        | _fields(values, "leader_epoch", "metadata", "commit_timestamp_ms", "expire_timestamp_ms", committed_offset="offset")
        | {"topic_id": topic_ids}
    )


def _group_metadata(records: list[_Record]) -> dict[str, list[Any]]:
    values = [record.value for record in records]
    members = [
        None
        if value is None
        else [_member(member, is_consumer=value.protocol_type == CONSUMER_PROTOCOL_TYPE) for member in value.members]
        for value in values
    ]
    return (
        _fields([record.key for record in records], "group")
        | _fields(values, "protocol_type", "generation", "protocol", "leader", state_timestamp_ms="current_state_timestamp_ms")
        | {"members": members}
    )


def _transactions(records: list[_Record]) -> dict[str, list[Any]]:
    values = [record.value for record in records]
    partitions = [
        None if value is None else [{"topic": topic, "partition": partition} for topic, partition in sorted(value.partitions)]
        for value in values
    ]
    return (
        _fields([record.key for record in records], "transactional_id")
        | _fields(
            values,
            *("producer_id", "producer_epoch", "timeout_ms", "last_update_ms", "start_ms"),
            *("previous_producer_id", "next_producer_id", "client_transaction_version"),
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
        "topics": subscribed_topics(member.subscription) if is_consumer else None,
        "assignment": assigned_partitions(member.assignment) if is_consumer else None,
    }


_UNPLACED = StructType([field for field in RAW.fields if field.name not in {"date", "batch"}])
DECODED = struct(_UNPLACED, reason=STRING, key=BinaryType(), value=BinaryType())
"""A row of ``RAW``; or of ``QUARANTINE``, if it has a ``reason``. The partition columns come later."""

_READ = ("topic", "partition", "offset", "timestamp", "key", "value")
_COORDINATES = _READ[:4]
_KINDS = (OFFSET_COMMITS, GROUPS, TRANSACTIONS)
_OTHER_TOPICS = (TRANSACTION_STATE, SHARE_GROUP_STATE)


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
    is_on = {topic: pc.fill_null(pc.equal(topics, topic), False).to_numpy(zero_copy_only=False) for topic in _OTHER_TOPICS}
    is_on[CONSUMER_OFFSETS] = ~np.logical_or.reduce(list(is_on.values()))
    for kind in _KINDS:
        is_of_kind = np.isin(key_versions, kind.key_versions) & is_on[kind.topic]
        for version in kind.value_versions:
            # A tombstone has no version. It is read together with the first version.
            is_candidate = is_left & is_of_kind & (value.is_null | (value_versions == version))
            if not is_candidate.any():
                continue
            rows, columns = read_rows(kind, version, key, value, np.flatnonzero(is_candidate))
            is_left[rows] = False
            if len(rows):
                yield rows, columns | {"kind": pa.repeat(kind.name, len(rows)), "is_tombstone": pa.array(value.is_null[rows])}
    for topic, kinds in ((CONSUMER_OFFSETS, KINDS), (SHARE_GROUP_STATE, SHARE_STATE_KINDS)):
        yield from read_newer(kinds, key, value, key_versions, is_left & is_on[topic])


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
