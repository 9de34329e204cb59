"""Committed offsets, nearly all that a cluster's coordinators write, a batch at a time: numpy over the bytes of Arrow's columns.

Read are the forms that brokers of today write, by where their fields lie; each row of a batch is of one of them, or is left to
who reads records one by one, so that what is read here is what ``protocol.coordinator_records`` would have read:

    key      int16 version, 0 or 1 | int16 size, group | int16 size, topic | int32 partition
    value    int16 version, 4 | int64 offset | int32 leader epoch | uvarint size + 1, one byte of it, metadata |
             int64 commit timestamp | no tagged field, or one: 1, 0, 16, topic id
             or null, a tombstone
"""

from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Integers: TypeAlias = NDArray[np.int64]

_KEY_BYTES = 10
_VERSION = 4
_NO_EXPIRY_MS = -1
# Where a value's fields are, and what else it has beside the metadata.
_OFFSET_AT, _EPOCH_AT, _METADATA_SIZE_AT, _METADATA_AT = 2, 10, 14, 15
_PLAIN_BYTES = 24
_TOPIC_ID_BYTES = 16
_TAG_BYTES = 2
_MOST_METADATA_BYTES = 0x7E
_ZERO_ID = bytes(_TOPIC_ID_BYTES)


class _Column(NamedTuple):
    """A column's bytes, and where each row's begin and how many they are; null rows have none."""

    data: NDArray[np.uint8]
    starts: _Integers
    sizes: _Integers
    is_null: NDArray[np.bool_]


def offset_commits(keys: pa.Array, values: pa.Array) -> tuple[_Integers, dict[str, pa.Array]]:
    """The rows that are offset commits of the common forms, and their columns; none of them where a name is not UTF-8."""
    key, value = _column(keys), _column(values)
    rows = _rows_by_key(key)
    rows = rows[_is_common(value, rows)]
    try:
        return rows, _key_columns(key, rows) | _value_columns(value, rows)
    except pa.ArrowInvalid:
        return rows[:0], {}


def _column(array: pa.Array) -> _Column:
    array = array.cast(pa.binary())
    count = len(array)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + count + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return _Column(content, bounds[:-1], np.diff(bounds), array.is_null().to_numpy(zero_copy_only=False))


def _rows_by_key(key: _Column) -> _Integers:
    """The rows whose key is a whole one."""
    rows = np.flatnonzero(~key.is_null & (key.sizes >= _KEY_BYTES))
    starts, sizes = key.starts[rows], key.sizes[rows]
    group_bytes = _integers(key.data, starts + 2, ">i2")
    version = _integers(key.data, starts, ">i2")
    # The group's name ends before the topic's size and the partition.
    fits = (version >= 0) & (version <= 1) & (group_bytes >= 0) & (group_bytes <= sizes - _KEY_BYTES)
    rows, starts, sizes, group_bytes = rows[fits], starts[fits], sizes[fits], group_bytes[fits]
    topic_bytes = _integers(key.data, starts + 4 + group_bytes, ">i2")
    whole: _Integers = rows[topic_bytes == sizes - _KEY_BYTES - group_bytes]
    return whole


def _is_common(value: _Column, rows: _Integers) -> NDArray[np.bool_]:
    """Whether each row's value has one of the forms."""
    is_common = value.is_null[rows]
    long_enough = np.flatnonzero(~is_common & (value.sizes[rows] >= _PLAIN_BYTES))
    starts, sizes = value.starts[rows[long_enough]], value.sizes[rows[long_enough]]
    metadata_bytes = value.data[starts + _METADATA_SIZE_AT].astype(np.int64) - 1
    tagged_bytes = sizes - _PLAIN_BYTES - metadata_bytes
    fits = (metadata_bytes >= 0) & (metadata_bytes <= _MOST_METADATA_BYTES)
    fits &= _integers(value.data, starts, ">i2") == _VERSION
    fits &= (tagged_bytes == 0) | (tagged_bytes == _TAG_BYTES + _TOPIC_ID_BYTES)
    # Where it does not fit there may be no such byte: any will do.
    tags_at = np.where(fits, starts + sizes - 1 - tagged_bytes, starts)
    is_tagged = fits & (tagged_bytes > 0)
    fits &= value.data[tags_at] == is_tagged
    behind = np.where(is_tagged, tags_at, starts)
    fits &= ~is_tagged | ((value.data[behind + 1] == 0) & (value.data[behind + 2] == _TOPIC_ID_BYTES))
    is_common[long_enough] = fits
    return is_common


def _key_columns(key: _Column, rows: _Integers) -> dict[str, pa.Array]:
    starts, sizes = key.starts[rows], key.sizes[rows]
    group_bytes = _integers(key.data, starts + 2, ">i2")
    return {
        "key_version": pa.array(_integers(key.data, starts, ">i2"), pa.int32()),
        "group": _strings(key.data, starts + 4, group_bytes),
        "commit_topic": _strings(key.data, starts + 6 + group_bytes, sizes - _KEY_BYTES - group_bytes),
        "commit_partition": pa.array(_integers(key.data, starts + sizes - 4, ">i4"), pa.int32()),
    }


def _value_columns(value: _Column, rows: _Integers) -> dict[str, pa.Array]:
    """Null where the value is."""
    is_null = value.is_null[rows]
    there = np.flatnonzero(~is_null)
    starts, sizes = value.starts[rows[there]], value.sizes[rows[there]]
    metadata_bytes = value.data[starts + _METADATA_SIZE_AT].astype(np.int64) - 1
    columns = {
        "value_version": pa.array(_integers(value.data, starts, ">i2"), pa.int32()),
        "committed_offset": pa.array(_integers(value.data, starts + _OFFSET_AT, ">i8")),
        "leader_epoch": pa.array(_integers(value.data, starts + _EPOCH_AT, ">i4"), pa.int32()),
        "metadata": _strings(value.data, starts + _METADATA_AT, metadata_bytes),
        "commit_timestamp_ms": pa.array(_integers(value.data, starts + _METADATA_AT + metadata_bytes, ">i8")),
        "expire_timestamp_ms": pa.array(np.full(len(there), _NO_EXPIRY_MS)),
        "topic_id": _topic_ids(value.data, starts, sizes, sizes > _PLAIN_BYTES + metadata_bytes),
    }
    if len(there) == len(rows):
        return columns
    places = np.zeros(len(rows), np.int64)
    places[there] = np.arange(len(there))
    of_value = pa.array(places, mask=is_null)
    return {name: column.take(of_value) for name, column in columns.items()}


def _topic_ids(data: NDArray[np.uint8], starts: _Integers, sizes: _Integers, has_id: NDArray[np.bool_]) -> pa.Array:
    """As Kafka's tools print them; null where there is none. A batch has few different ones, and each is made once."""
    ends = (starts + sizes)[has_id]
    raw = _gather(data, ends - _TOPIC_ID_BYTES, _TOPIC_ID_BYTES)
    found = pa.Array.from_buffers(pa.binary(_TOPIC_ID_BYTES), len(ends), [None, pa.py_buffer(raw)]).dictionary_encode()
    names = pa.array([topic_id(each) for each in found.dictionary.to_pylist()], pa.string())
    places = np.zeros(len(starts), np.int64)
    places[has_id] = found.indices.to_numpy()
    return names.take(pa.array(places, mask=~has_id))


# A log names few topics many times.
@lru_cache(maxsize=1024)
def topic_id(raw: bytes) -> str | None:
    """A topic's id as Kafka's tools print it; None for the id that says there is none."""
    return None if raw == _ZERO_ID else urlsafe_b64encode(raw).decode().rstrip("=")


def _integers(data: NDArray[np.uint8], at: _Integers, kind: str) -> _Integers:
    """The integers at these places, of a numpy ``kind``."""
    dtype = np.dtype(kind)
    return _gather(data, at, dtype.itemsize).view(dtype).reshape(-1).astype(np.int64)


def _gather(data: NDArray[np.uint8], at: _Integers, size: int) -> NDArray[np.uint8]:
    """``size`` bytes from each of these places on, a row each."""
    found: NDArray[np.uint8] = data[at[:, None] + np.arange(size)]
    return found


def _strings(data: NDArray[np.uint8], starts: _Integers, sizes: _Integers) -> Any:
    """Strings of these places and sizes, in bytes. Raises ArrowInvalid where one is not UTF-8."""
    bounds = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(sizes, out=bounds[1:])
    content = data[np.repeat(starts - bounds[:-1], sizes) + np.arange(bounds[-1])]
    return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(content)]).cast(pa.string())
