"""Frequent kinds of records into columns: committed offsets, generations of classic groups, states of transactional ids.

A row is read here only if its whole key and value are well-formed and its texts are UTF-8. The result equals that of
``protocol.coordinator_records``. All other rows are left to ``decode.read_one_by_one``. A member's subscription and assignment
are column values; None if the bytes are not in the consumer protocol. Each value may be null, a tombstone.

Committed offsets, the most frequent records by far. Brokers from 4.2 on write version 4, and version 1 if there is an expire
timestamp; older ones write 3.

    key      int16 version, 0 or 1 | string group | string topic | int32 partition
    value    int16 version | int64 offset | int32 leader epoch (3+) | string metadata, compact in 4 | int64 commit timestamp |
             int64 expire timestamp (1) | tagged fields (4): 0 topic id

Generations of classic groups, without version 4, which no broker writes yet. Equal subscriptions and equal assignments of
consumers are decoded once.

    key      int16 version, 2 | string group
    value    int16 version | string protocol type | int32 generation | nullable string protocol | nullable string leader |
             int64 current state timestamp (2+) | int32 count of members
    member   string member id | nullable string group instance id (3+) | string client id | string client host |
             int32 rebalance timeout (1+) | int32 session timeout | bytes subscription | bytes assignment

States of transactional ids. Brokers from 4.0 on write version 1, older ones version 0. Left out: a status that Kafka does not
have, a next producer epoch (KIP-939).

    key      int16 version, 0 | string transactional id
    value    int16 version | int64 producer id | int16 producer epoch | int32 timeout | int8 status |
             count of topics | int64 last update | int64 start |
             tagged fields (1): 0 int64 previous producer id, 1 int64 next producer id, 2 int16 client transaction version
    topic    string topic, compact in 1 | count of partitions | int32 each | no tagged field (1)
    count    int32, or -1 for null (0); uvarint count + 1, or 0 (1)
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.columns import (
    NO_ELEMENTS,
    Bytes,
    Column,
    Cursor,
    Elements,
    Fields,
    Integers,
    Mask,
    arrow_columns,
    each_once,
    integers,
    lists,
    places_among,
    strings,
)
from odradek.pipeline.schema import (
    CONSUMER_OFFSETS,
    GROUP_METADATA,
    OFFSET_COMMIT,
    TRANSACTION,
    TRANSACTION_STATE,
)
from odradek.protocol.coordinator_records import MalformedMessage, consumer_protocol
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from odradek.protocol.texts import uuid_bytes_text


class Rows(NamedTuple):
    """The fields of rows, by the name of the column, and the elements of the rows' array, if the kind has one."""

    fields: Fields
    elements: Elements = NO_ELEMENTS

    def where(self, is_kept: Mask) -> "Rows":
        """Return the kept rows. Mostly these are all rows."""
        if is_kept.all():
            return self
        kept = np.flatnonzero(is_kept)
        return Rows({name: field.take(kept, axis=0) for name, field in self.fields.items()}, self.elements.where(is_kept))


class Kind(NamedTuple):
    """A kind of record on ``topic``, with the versions of its keys and values.

    ``value_versions`` are in the order in which they are tried, the most frequent first. ``read_value`` takes the version as
    its first argument. ``build`` makes the columns, out of the values' bytes and the result of ``read_value``; it may raise
    ArrowInvalid.
    """

    name: str
    topic: str
    key_versions: tuple[int, ...]
    value_versions: tuple[int, ...]
    read_key: Callable[[Cursor], Fields]
    read_value: Callable[[int, Cursor], Rows]
    build: Callable[[Bytes, Rows], dict[str, pa.Array]]


def read_rows(kind: Kind, version: int, key: Column, value: Column, rows: Integers) -> tuple[Integers, dict[str, pa.Array]]:
    """Return the well-formed ones among ``rows`` (keys of this kind, values of this ``version``), and their columns.

    A tombstone (a null value) has nulls in the columns that come from values. If any text is not UTF-8, no row is returned.
    """
    keys = key.cursor(rows)
    named = Rows(kind.read_key(keys))
    is_whole = keys.is_whole()
    rows, named = rows[is_whole], named.where(is_whole)
    has_value = ~value.is_null[rows]
    values = value.cursor(rows[has_value])
    told = kind.read_value(version, values)
    is_formed = ~has_value
    is_formed[has_value] = values.is_whole()
    rows, named, told = rows[is_formed], named.where(is_formed), told.where(values.is_whole())
    try:
        columns = kind.build(value.data, told)
        return rows, arrow_columns(key.data, named.fields) | _with_nulls(columns, ~has_value[is_formed])
    except pa.ArrowInvalid:
        return rows[:0], {}


def _with_nulls(columns: dict[str, pa.Array], is_null: Mask) -> dict[str, pa.Array]:
    """Return columns of the rows that have a value, extended by a null for each row without."""
    if not is_null.any():
        return columns
    places = places_among(~is_null)
    return {name: column.take(places) for name, column in columns.items()}


# A member mostly sends the same bytes in every generation, and members mostly send the same as each other.
@lru_cache(maxsize=4096)
def subscribed_topics(subscription: bytes) -> list[str] | None:
    """Return the subscribed topics, in the order given."""
    try:
        return consumer_protocol.subscribed_topics(subscription)
    except MalformedMessage:
        return None


@lru_cache(maxsize=4096)
def assigned_partitions(assignment: bytes) -> list[dict[str, Any]] | None:
    """Return the assigned topics with their partitions; an empty list for empty bytes."""
    try:
        assigned = consumer_protocol.assigned_partitions(assignment)
    except MalformedMessage:
        return None
    return [{"topic": topic, "partitions": partitions} for topic, partitions in assigned]


_NONE = -1
_TOPIC_ID_TAG, _TOPIC_ID_BYTES = 0, 16
_ZERO_ID = bytes(_TOPIC_ID_BYTES)


def _read_offset_key(key: Cursor) -> Fields:
    return {
        "key_version": key.read_int16(),
        "group": key.read_string(),
        "commit_topic": key.read_string(),
        "commit_partition": key.read_int32(),
    }


def _read_offset_commit(version: int, value: Cursor) -> Rows:
    fields = {"value_version": value.read_int16(), "committed_offset": value.read_int64()}
    none = np.full(len(fields["value_version"]), _NONE)
    fields |= {
        "leader_epoch": value.read_int32() if version >= 3 else none,
        "metadata": value.read_compact_string() if version >= 4 else value.read_string(),
        "commit_timestamp_ms": value.read_int64(),
        "expire_timestamp_ms": value.read_int64() if version == 1 else none,
        "topic_id": value.read_tagged_fields({_TOPIC_ID_TAG: _TOPIC_ID_BYTES})[_TOPIC_ID_TAG] if version >= 4 else none,
    }
    return Rows(fields)


def _build_offset_commits(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
    fields = dict(rows.fields)
    topic_ids = _topic_ids(data, fields.pop("topic_id"))
    return arrow_columns(data, fields) | {"topic_id": topic_ids}


def _topic_ids(data: Bytes, starts: Integers) -> pa.Array:
    """Return topic ids as Kafka's tools print them; null for none. A batch has few different ids; each is converted once."""
    has_id = starts >= 0
    places = np.stack((starts[has_id], np.full(np.count_nonzero(has_id), _TOPIC_ID_BYTES)), axis=1)
    return each_once(data, places, topic_id, pa.string()).take(places_among(has_id))


# A log repeats few topics many times.
@lru_cache(maxsize=1024)
def topic_id(raw: bytes) -> str | None:
    """Return a topic id as Kafka's tools print it; None for the zero id."""
    return None if raw == _ZERO_ID else uuid_bytes_text(raw)


OFFSET_COMMITS = Kind(
    OFFSET_COMMIT, CONSUMER_OFFSETS, (0, 1), (4, 3, 2, 1, 0), _read_offset_key, _read_offset_commit, _build_offset_commits
)


# The size of a member with empty fields in the smallest version: three strings, a timeout, two byte fields.
_MEMBER_BYTES = 18
_NULL = (0, -1)
_TOPICS = pa.list_(pa.string())
_ASSIGNMENT = pa.list_(pa.struct({"topic": pa.string(), "partitions": pa.list_(pa.int32())}))


def _read_group_key(key: Cursor) -> Fields:
    return {"key_version": key.read_int16(), "group": key.read_string()}


def _read_generation(version: int, value: Cursor) -> Rows:
    fields = {
        "value_version": value.read_int16(),
        "protocol_type": value.read_string(),
        "generation": value.read_int32(),
        "protocol": value.read_nullable_string(),
        "leader": value.read_nullable_string(),
    }
    count = len(fields["value_version"])
    fields["state_timestamp_ms"] = value.read_int64() if version >= 2 else np.full(count, _NONE)
    return Rows(fields, value.read_array(value.read_int32(), _MEMBER_BYTES, partial(_read_member, version)))


def _read_member(version: int, member: Cursor) -> Fields:
    member_id = member.read_string()
    count = len(member_id)
    return {
        "member_id": member_id,
        "group_instance_id": member.read_nullable_string() if version >= 3 else np.full((count, 2), _NULL),
        "client_id": member.read_string(),
        "client_host": member.read_string(),
        "rebalance_timeout": member.read_int32() if version >= 1 else np.full(count, _NONE),
        "session_timeout": member.read_int32(),
        "topics": member.read_bytes(),
        "assignment": member.read_bytes(),
    }


def _build_generations(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
    columns = arrow_columns(data, rows.fields)
    told = dict(rows.elements.fields)
    subscription, assignment = told.pop("topics"), told.pop("assignment")
    is_consumer = pc.equal(columns["protocol_type"], CONSUMER_PROTOCOL_TYPE).to_numpy(zero_copy_only=False)[rows.elements.rows]
    members = arrow_columns(data, told) | {
        "topics": _of_consumers(data, subscription, is_consumer, subscribed_topics, _TOPICS),
        "assignment": _of_consumers(data, assignment, is_consumer, assigned_partitions, _ASSIGNMENT),
    }
    structs = pa.StructArray.from_arrays(list(members.values()), names=list(members))
    return columns | {"members": lists(rows.elements, len(columns["generation"]), structs)}


def _of_consumers(
    data: Bytes, places: Integers, is_consumer: Mask, decode: Callable[[bytes], Any], decoded: pa.DataType
) -> pa.Array:
    """Return the decoded bytes at these places; null if the group is not of consumers."""
    return each_once(data, places[is_consumer], decode, decoded).take(places_among(is_consumer))


GROUPS = Kind(GROUP_METADATA, CONSUMER_OFFSETS, (2,), (3, 2, 1, 0), _read_group_key, _read_generation, _build_generations)


# Names as in DescribeTransactions, by the status in the record.
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
# The size of a topic with an empty name and no partitions, in the smallest version.
_TOPIC_BYTES = 3
_PARTITION_BYTES = 4
_PREVIOUS_PRODUCER_ID_TAG, _NEXT_PRODUCER_ID_TAG, _CLIENT_VERSION_TAG = 0, 1, 2
_TAGGED_BYTES = {_PREVIOUS_PRODUCER_ID_TAG: 8, _NEXT_PRODUCER_ID_TAG: 8, _CLIENT_VERSION_TAG: 2}
_NO_PRODUCER_ID = -1


def _read_transaction_key(key: Cursor) -> Fields:
    return {"key_version": key.read_int16(), "transactional_id": key.read_string()}


def _read_transaction(version: int, value: Cursor) -> Rows:
    fields = {
        "value_version": value.read_int16(),
        "producer_id": value.read_int64(),
        "producer_epoch": value.read_int16(),
        "timeout_ms": value.read_int32(),
        "status": value.read_int8(),
    }
    value.require((fields["status"] >= 0) & (fields["status"] < len(STATUSES)))
    # A null array has no topics. That of a topic's partitions is never null.
    topics = value.read_array(np.maximum(_read_count(version, value), 0), _TOPIC_BYTES, partial(_read_topic, version))
    fields |= {"last_update_ms": value.read_int64(), "start_ms": value.read_int64()}
    none = np.full(len(fields["status"]), -1)
    tagged = value.read_tagged_fields(_TAGGED_BYTES) if version >= 1 else dict.fromkeys(_TAGGED_BYTES, none)
    fields |= {
        "previous_producer_id": _tagged(value.data, tagged[_PREVIOUS_PRODUCER_ID_TAG], ">i8", _NO_PRODUCER_ID),
        "next_producer_id": _tagged(value.data, tagged[_NEXT_PRODUCER_ID_TAG], ">i8", _NO_PRODUCER_ID),
        "client_transaction_version": _tagged(value.data, tagged[_CLIENT_VERSION_TAG], ">i2", 0),
    }
    return Rows(fields, topics)


def _read_count(version: int, cursor: Cursor) -> Integers:
    """Return the count of an array; -1 for a null one."""
    return cursor.read_uvarint() - 1 if version >= 1 else cursor.read_int32()


def _read_topic(version: int, topic: Cursor) -> Fields:
    name = topic.read_compact_string() if version >= 1 else topic.read_string()
    count = _read_count(version, topic)
    topic.require(count >= 0)
    count = np.maximum(count, 0)
    fields = {"topic": name, "count": count, "partitions_at": topic.skip(count * _PARTITION_BYTES)}
    if version >= 1:
        topic.read_tagged_fields({})
    return fields


def _tagged(data: Bytes, starts: Integers, kind: str, default: int) -> Integers:
    return np.where(starts >= 0, integers(data, np.maximum(starts, 0), kind), default)


def _build_transactions(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
    columns = arrow_columns(data, rows.fields)
    return columns | {
        "status": pa.array(STATUSES).take(columns["status"]),
        "partitions": _partitions(data, rows.elements, len(columns["status"])),
    }


def _partitions(data: Bytes, topics: Elements, count: int) -> pa.Array:
    """Return the partitions of each row, ordered by topic and number, without duplicates, as lists of structs."""
    counts = topics.fields["count"]
    of_topic = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(of_topic)) - np.repeat(np.cumsum(counts) - counts, counts)
    partition = integers(data, topics.fields["partitions_at"][of_topic] + _PARTITION_BYTES * places, ">i4")
    names = strings(data, topics.fields["topic"]).dictionary_encode()
    # UTF-8 bytes sort in the order of code points.
    by_name = pc.array_sort_indices(names.dictionary).to_numpy()
    ranks = np.empty_like(by_name)
    ranks[by_name] = np.arange(len(by_name))
    topic, row = ranks[names.indices.to_numpy()][of_topic], topics.rows[of_topic]
    order = np.lexsort((partition, topic, row))
    topic, row, partition = topic[order], row[order], partition[order]
    is_new = np.ones(len(row), np.bool_)
    is_new[1:] = (row[1:] != row[:-1]) | (topic[1:] != topic[:-1]) | (partition[1:] != partition[:-1])
    structs = pa.StructArray.from_arrays(
        [names.dictionary.take(pa.array(by_name[topic[is_new]])), pa.array(partition[is_new])], names=["topic", "partition"]
    )
    return lists(Elements(row[is_new], {}), count, structs)


TRANSACTIONS = Kind(TRANSACTION, TRANSACTION_STATE, (0,), (1, 0), _read_transaction_key, _read_transaction, _build_transactions)
