"""States of transactional ids, read by columns (``kinds``).

    key      int16 version, 0 | string transactional id
    value    int16 version | int64 producer id | int16 producer epoch | int32 timeout | int8 status |
             count of topics | int64 last update | int64 start |
             tagged fields (1): 0 int64 previous producer id, 1 int64 next producer id, 2 int16 client transaction version
             or null, a tombstone
    topic    string topic, compact in 1 | count of partitions | int32 each | no tagged field (1)
    count    int32, or -1 for null (0); uvarint count + 1, or 0 (1)

Brokers from 4.0 on write version 1, older ones version 0.

Left out: a status that Kafka does not have, a next producer epoch (KIP-939).
"""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.columns import Bytes, Cursor, Elements, Fields, Integers, arrow_columns, integers, lists, strings
from odradek.pipeline.kinds import Kind, Rows
from odradek.pipeline.schema import TRANSACTION

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


def _read_key(key: Cursor) -> Fields:
    return {"key_version": key.read_int16(), "transactional_id": key.read_string()}


def _read_value(version: int, value: Cursor) -> Rows:
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


def _build(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
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


TRANSACTIONS = Kind(TRANSACTION, True, (0,), (1, 0), _read_key, _read_value, _build)
