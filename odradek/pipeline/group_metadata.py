"""Generations of classic groups, read by columns (``kinds``) in the form that brokers of today write.

    key      int16 version, 2 | string group
    value    int16 version, 3 | string protocol type | int32 generation | nullable string protocol | nullable string leader |
             int64 current state timestamp | int32 count of members
             or null, a tombstone
    member   string member id | nullable string group instance id | string client id | string client host |
             int32 rebalance timeout | int32 session timeout | bytes subscription | bytes assignment

What members of consumers' groups subscribe to and are assigned is decoded once for all that say the same.

Left out: the other versions, which brokers of today do not write.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.columns import Bytes, Cursor, Fields, Integers, Mask, arrow_columns, binaries, lists
from odradek.pipeline.consumer_protocol import CONSUMER, assigned_partitions, subscribed_topics
from odradek.pipeline.kinds import Kind, Rows
from odradek.pipeline.schema import GROUP_METADATA

_VERSION = 3
# A member that says nothing: four strings, two timeouts, twice bytes.
_MEMBER_BYTES = 24
_TOPICS = pa.list_(pa.string())
_ASSIGNMENT = pa.list_(pa.struct({"topic": pa.string(), "partitions": pa.list_(pa.int32())}))


def _read_key(key: Cursor) -> Fields:
    return {"key_version": key.read_int16(), "group": key.read_string()}


def _read_value(value: Cursor) -> Rows:
    fields = {
        "value_version": value.read_int16(),
        "protocol_type": value.read_string(),
        "generation": value.read_int32(),
        "protocol": value.read_nullable_string(),
        "leader": value.read_nullable_string(),
        "state_timestamp_ms": value.read_int64(),
    }
    value.require(fields["value_version"] == _VERSION)
    return Rows(fields, value.read_array(value.read_int32(), _MEMBER_BYTES, _read_member))


def _read_member(member: Cursor) -> Fields:
    return {
        "member_id": member.read_string(),
        "group_instance_id": member.read_nullable_string(),
        "client_id": member.read_string(),
        "client_host": member.read_string(),
        "rebalance_timeout": member.read_int32(),
        "session_timeout": member.read_int32(),
        "topics": member.read_bytes(),
        "assignment": member.read_bytes(),
    }


def _build(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
    columns = arrow_columns(data, rows.fields)
    told = dict(rows.elements.fields)
    subscription, assignment = told.pop("topics"), told.pop("assignment")
    is_consumer = pc.equal(columns["protocol_type"], CONSUMER).to_numpy(zero_copy_only=False)[rows.elements.rows]
    members = arrow_columns(data, told) | {
        "topics": _of_consumers(data, subscription, is_consumer, subscribed_topics, _TOPICS),
        "assignment": _of_consumers(data, assignment, is_consumer, assigned_partitions, _ASSIGNMENT),
    }
    structs = pa.StructArray.from_arrays(list(members.values()), names=list(members))
    return columns | {"members": lists(rows.elements, len(columns["generation"]), structs)}


def _of_consumers(
    data: Bytes, places: Integers, is_consumer: Mask, decode: Callable[[bytes], Any], decoded: pa.DataType
) -> pa.Array:
    """What the bytes at these places say; null where they are not a consumer's."""
    found = binaries(data, places).dictionary_encode()
    distinct = pa.array([decode(each) for each in found.dictionary.to_pylist()], decoded)
    return distinct.take(pa.array(found.indices.to_numpy(), mask=~is_consumer))


GROUPS = Kind(GROUP_METADATA, False, (2,), _read_key, _read_value, _build)
