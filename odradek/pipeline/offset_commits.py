"""Committed offsets, the most frequent records by far, read by columns (``kinds``).

    key      int16 version, 0 or 1 | string group | string topic | int32 partition
    value    int16 version | int64 offset | int32 leader epoch (3+) | string metadata, compact in 4 | int64 commit timestamp |
             int64 expire timestamp (1) | tagged fields (4): 0 topic id
             or null, a tombstone

Brokers from 4.2 on write version 4, and version 1 if there is an expire timestamp; older ones write 3.
"""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from odradek.pipeline.columns import Bytes, Cursor, Fields, Integers, arrow_columns, each_once, places_among
from odradek.pipeline.kinds import Kind, Rows
from odradek.pipeline.schema import OFFSET_COMMIT
from odradek.protocol.coordinator_records.newer_groups import topic_id_text

_NONE = -1
_TOPIC_ID_TAG, _TOPIC_ID_BYTES = 0, 16
_ZERO_ID = bytes(_TOPIC_ID_BYTES)


def _read_key(key: Cursor) -> Fields:
    return {
        "key_version": key.read_int16(),
        "group": key.read_string(),
        "commit_topic": key.read_string(),
        "commit_partition": key.read_int32(),
    }


def _read_value(version: int, value: Cursor) -> Rows:
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


def _build(data: Bytes, rows: Rows) -> dict[str, pa.Array]:
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
    return None if raw == _ZERO_ID else topic_id_text(raw)


OFFSET_COMMITS = Kind(OFFSET_COMMIT, False, (0, 1), (4, 3, 2, 1, 0), _read_key, _read_value, _build)
