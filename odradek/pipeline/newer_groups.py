"""The records of consumer (KIP-848), share and streams groups into JSON, by columns.

What is written of a row is what ``json.dumps`` would write of what ``protocol.coordinator_records.newer_groups`` reads of it.
Each field of all rows becomes a column of texts, and those of a row are joined. Strings, topic ids and bytes become text once
for all that are the same.

Left out, and so are the rows that have them: what ``columns`` leaves out, texts that are not UTF-8, values of a newer version.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.columns import Column, Cursor, Elements, Integers, Mask, binaries, lists, strings
from odradek.protocol.coordinator_records.newer_groups import (
    KINDS,
    VALUE_VERSION,
    Array,
    Kind,
    Nullable,
    Plain,
    Struct,
    Type,
    topic_id_text,
)

_READ_INTEGER: dict[Plain, Callable[[Cursor], Integers]] = {
    Plain.INT8: Cursor.read_int8,
    Plain.UINT16: Cursor.read_uint16,
    Plain.INT16: Cursor.read_int16,
    Plain.INT32: Cursor.read_int32,
    Plain.INT64: Cursor.read_int64,
}
_UUID_BYTES = 16


def read_newer(key: Column, value: Column, key_versions: Integers, is_left: Mask) -> Iterator[tuple[Integers, dict[str, Any]]]:
    """Of the rows that are left those of each kind, and their columns."""
    for key_version in np.unique(key_versions[is_left]).tolist():
        kind = KINDS.get(key_version)
        if kind is not None:
            rows, columns = _read_kind(kind, key, value, np.flatnonzero(is_left & (key_versions == key_version)))
            if len(rows):
                yield rows, columns | {"key_version": pa.array(np.full(len(rows), key_version))}


def _read_kind(kind: Kind, key: Column, value: Column, rows: Integers) -> tuple[Integers, dict[str, Any]]:
    keys = key.cursor(rows)
    keys.read_int16()
    places = [keys.read_string() for _ in kind.key_names]
    named = _joined(zip(kind.key_names, [_texts(keys, each, _json_string) for each in places], strict=True))
    has_value = ~value.is_null[rows]
    values = value.cursor(rows[has_value])
    values.require(values.read_int16() == VALUE_VERSION)
    told = _fields(values, kind.value)
    is_read = keys.is_whole()
    is_read[has_value] &= values.is_whole()
    told = pc.binary_join_element_wise(",", _spread(told, np.flatnonzero(has_value), len(rows)), "")
    texts = pc.binary_join_element_wise("{", named, pc.fill_null(told, ""), "}", "")
    kept = np.flatnonzero(is_read)
    return rows[kept], {
        "kind": pa.repeat(kind.name, len(kept)),
        "is_tombstone": pa.array(~has_value[kept]),
        "value_version": pa.array(np.full(len(kept), VALUE_VERSION), mask=~has_value[kept]),
        "group": strings(key.data, places[0][kept]),
        "fields": texts.take(pa.array(kept)),
    }


def _read(cursor: Cursor, kind: Type) -> pa.Array:
    """The text of a field of each row; of one that is out, any or null."""
    if isinstance(kind, Struct):
        return _braced(_fields(cursor, kind))
    if isinstance(kind, Nullable):
        return _read_nullable(cursor, kind.struct)
    if isinstance(kind, Array):
        return _read_array(cursor, kind.element)
    if kind in _READ_INTEGER:
        return pa.array(_READ_INTEGER[kind](cursor)).cast(pa.string())
    if kind is Plain.UUID:
        starts = cursor.skip(_UUID_BYTES)
        return _texts(cursor, np.stack((starts, np.full(len(starts), _UUID_BYTES)), axis=1), _json_topic_id)
    if kind is Plain.NULLABLE_STRING:
        return pc.fill_null(_texts(cursor, cursor.read_nullable_compact_string(), _json_string), "null")
    # Bytes that are compact have sizes as strings have.
    return _texts(cursor, cursor.read_compact_string(), _json_bytes if kind is Plain.BYTES else _json_string)


def _fields(cursor: Cursor, struct: Struct) -> pa.Array:
    """A struct's fields, without its braces."""
    told = _joined((name, _read(cursor, kind)) for name, kind in struct.fields.items())
    left = cursor.read_uvarint()
    for tag in sorted(struct.tagged):
        name, kind = struct.tagged[tag]
        having = np.flatnonzero(cursor.fits & (left > 0) & (cursor.peek() == tag))
        part = cursor.part(having)
        part.skip(1)
        inside = part.inside(part.read_uvarint())
        texts = _read(inside, kind)
        part.require(inside.is_whole())
        cursor.join(having, part)
        left[having] -= 1
        tagged = _spread(pc.binary_join_element_wise(f',"{name}":', texts, ""), having, len(left))
        told = pc.binary_join_element_wise(told, pc.fill_null(tagged, ""), "")
    cursor.require(left == 0)
    return told


def _read_nullable(cursor: Cursor, struct: Struct) -> pa.Array:
    presence = cursor.read_int8()
    having = np.flatnonzero(cursor.fits & (presence >= 1))
    part = cursor.part(having)
    texts = _braced(_fields(part, struct))
    cursor.join(having, part)
    return pc.fill_null(_spread(texts, having, len(presence)), "null")


def _read_array(cursor: Cursor, element: Type) -> pa.Array:
    counts = cursor.read_uvarint() - 1
    rows, texts = [], []
    for having, part in cursor.elements(np.maximum(counts, 0), 1):
        rows.append(having)
        texts.append(_read(part, element))
    flat = np.concatenate(rows)
    order = np.argsort(flat, kind="stable")
    of_rows = lists(Elements(flat[order], {}), len(counts), pa.concat_arrays(texts).take(pa.array(order)))
    joined = pc.binary_join_element_wise("[", pc.binary_join(of_rows, ","), "]", "")
    return pc.if_else(pa.array(counts >= 0), joined, "null")


def _joined(named: Any) -> pa.Array:
    """``"name":text,"name":text`` of (name, texts) pairs, one at least."""
    parts: list[Any] = []
    for name, texts in named:
        parts += [f'{"," if parts else ""}"{name}":', texts]
    return pc.binary_join_element_wise(*parts, "")


def _braced(fields: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("{", fields, "}", "")


def _texts(cursor: Cursor, places: Integers, write: Callable[[bytes], str | None]) -> pa.Array:
    """What ``write`` makes of the bytes at these places; null where they are. Where it makes nothing of them the row is out."""
    having = np.flatnonzero(cursor.fits & (places[:, 1] >= 0))
    found = binaries(cursor.data, places[having]).dictionary_encode()
    distinct = pa.array([write(each) for each in found.dictionary.to_pylist()], pa.string())
    texts = distinct.take(found.indices)
    if texts.null_count:
        is_written = np.ones(len(places), np.bool_)
        is_written[having] = texts.is_valid().to_numpy(zero_copy_only=False)
        cursor.require(is_written)
    return _spread(texts, having, len(places))


def _spread(texts: pa.Array, rows: Integers, count: int) -> pa.Array:
    """The texts of these rows among ``count``, the others null."""
    if len(rows) == count:
        return texts
    places, is_other = np.zeros(count, np.int64), np.ones(count, np.bool_)
    places[rows] = np.arange(len(rows))
    is_other[rows] = False
    return texts.take(pa.array(places, mask=is_other))


def _json_string(raw: bytes) -> str | None:
    try:
        return json.dumps(raw.decode())
    except UnicodeDecodeError:
        return None


def _json_topic_id(raw: bytes) -> str:
    return json.dumps(topic_id_text(raw))


def _json_bytes(raw: bytes) -> str:
    return json.dumps(b64encode(raw).decode())
