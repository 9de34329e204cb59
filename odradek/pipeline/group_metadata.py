"""Generations of classic groups, read by columns (``kinds``).

    key      int16 version, 2 | string group
    value    int16 version | string protocol type | int32 generation | nullable string protocol | nullable string leader |
             int64 current state timestamp (2+) | int32 count of members
             or null, a tombstone
    member   string member id | nullable string group instance id (3+) | string client id | string client host |
             int32 rebalance timeout (1+) | int32 session timeout | bytes subscription | bytes assignment

Equal subscriptions and equal assignments of consumers are decoded once.

Left out: version 4, which no broker writes yet.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.columns import Bytes, Cursor, Fields, Integers, Mask, arrow_columns, each_once, lists, places_among
from odradek.pipeline.kinds import Kind, Rows, assigned_partitions, subscribed_topics
from odradek.pipeline.schema import GROUP_METADATA
from odradek.protocol.coordinator_records.consumer_protocol import CONSUMER_PROTOCOL_TYPE

# The size of a member with empty fields in the smallest version: three strings, a timeout, two byte fields.
_MEMBER_BYTES = 18
_NONE = -1
_NULL = (0, -1)
_TOPICS = pa.list_(pa.string())
_ASSIGNMENT = pa.list_(pa.struct({"topic": pa.string(), "partitions": pa.list_(pa.int32())}))


def _read_key(key: Cursor) -> Fields:
    return {"key_version": key.read_int16(), "group": key.read_string()}


def _read_value(version: int, value: Cursor) -> Rows:
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


def _build(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
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


GROUPS = Kind(GROUP_METADATA, False, (2,), (3, 2, 1, 0), _read_key, _read_value, _build)
