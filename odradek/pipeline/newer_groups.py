"""The records of consumer (KIP-848), share and streams groups, and the states of share partitions, into JSON, by columns.

The text of a row equals ``json.dumps`` of the record as ``protocol.coordinator_records.newer_groups`` reads it. Each field of
all rows becomes a column of texts, and the texts of a row are joined. Equal strings, topic ids and bytes become text once.

Left out: everything that ``columns`` leaves out, texts that are not UTF-8, values of a newer version. Rows with any of these
are dropped.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.pipeline.columns import Column, Cursor, Elements, Integers, Mask, each_once, lists, places_among, strings
from odradek.protocol.coordinator_records.newer_groups import (
    VALUE_VERSION,
    FieldSpec,
    Kind,
    Layout,
)
from odradek.protocol.texts import encode_base64, utf8_or_none, uuid_bytes_text

_READ_INTEGER: dict[str | None, Callable[[Cursor], Integers]] = {
    "int8": Cursor.read_int8,
    "uint16": Cursor.read_uint16,
    "int16": Cursor.read_int16,
    "int32": Cursor.read_int32,
    "int64": Cursor.read_int64,
}
_UUID_BYTES = 16


def read_newer(
    kinds: Mapping[int, Kind], key: Column, value: Column, key_versions: Integers, is_left: Mask
) -> Iterator[tuple[Integers, dict[str, Any]]]:
    """Yield, for each of these kinds, the rows of that kind among those left, and their columns."""
    for key_version in np.unique(key_versions[is_left]).tolist():
        kind = kinds.get(key_version)
        if kind is not None:
            rows, columns = _read_kind(kind, key, value, np.flatnonzero(is_left & (key_versions == key_version)))
            if len(rows):
                yield rows, columns | {"key_version": pa.array(np.full(len(rows), key_version))}


def _read_kind(kind: Kind, key: Column, value: Column, rows: Integers) -> tuple[Integers, dict[str, Any]]:
    keys = key.cursor(rows)
    keys.read_int16()
    groups = keys.read_string()
    group, *others = kind.key.fields
    named = _joined(
        [(group.name, _texts(keys, groups, _json_string)), *((spec.name, _read_of_key(keys, spec)) for spec in others)]
    )
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
        "group": strings(key.data, groups[kept]),
        "fields": texts.take(pa.array(kept)),
    }


def _read_of_key(cursor: Cursor, spec: FieldSpec) -> pa.Array:
    """Return the JSON text of a key's field in each row. Strings in keys are not compact."""
    return _texts(cursor, cursor.read_string(), _json_string) if spec.kafka_type == "string" else _read(cursor, spec)


def _read(cursor: Cursor, spec: FieldSpec) -> pa.Array:
    """Return the JSON text of a field in each row; arbitrary or null for a dropped row."""
    kind = spec.kafka_type
    element = spec._replace(is_array=False, nullable=False)
    if spec.is_array:
        counts = cursor.read_uvarint() - 1
        elements = _elements(cursor, np.maximum(counts, 0), element)
        return pc.if_else(pa.array(counts >= 0), pc.binary_join_element_wise("[", elements, "]", ""), "null")
    if spec.layout is not None and spec.nullable:
        presence = np.clip(cursor.read_int8(), 0, 1)
        return pc.if_else(pa.array(presence > 0), _elements(cursor, presence, element), "null")
    if spec.layout is not None:
        return pc.binary_join_element_wise("{", _fields(cursor, spec.layout), "}", "")
    if kind in _READ_INTEGER:
        return pa.array(_READ_INTEGER[kind](cursor)).cast(pa.string())
    if kind == "uuid":
        starts = cursor.skip(_UUID_BYTES)
        return _texts(cursor, np.stack((starts, np.full(len(starts), _UUID_BYTES)), axis=1), _json_topic_id)
    if kind == "string" and spec.nullable:
        return pc.fill_null(_texts(cursor, cursor.read_nullable_compact_string(), _json_string), "null")
    # Compact bytes have the same size prefix as compact strings.
    return _texts(cursor, cursor.read_compact_string(), _json_bytes if kind == "bytes" else _json_string)


def _fields(cursor: Cursor, layout: Layout) -> pa.Array:
    """Return the JSON text of a struct's fields, without its braces."""
    told = _joined((spec.name, _read(cursor, spec)) for spec in layout.fields if spec.tag is None)
    tagged = {spec.tag: spec for spec in layout.fields if spec.tag is not None}
    for tag, having, inside in cursor.tagged_fields(sorted(tagged)):
        texts = pc.binary_join_element_wise(f',"{tagged[tag].name}":', _read(inside, tagged[tag]), "")
        told = pc.binary_join_element_wise(told, pc.fill_null(_spread(texts, having, len(told)), ""), "")
    return told


def _elements(cursor: Cursor, counts: Integers, element: FieldSpec) -> pa.Array:
    """Return the JSON texts of the array elements of each row, joined by commas; ``counts`` elements in each row."""
    rows, texts = [], []
    for having, part in cursor.elements(counts, 1):
        rows.append(having)
        texts.append(_read(part, element))
    flat = np.concatenate(rows)
    order = np.argsort(flat, kind="stable")
    return pc.binary_join(lists(Elements(flat[order], {}), len(counts), pa.concat_arrays(texts).take(pa.array(order))), ",")


def _joined(named: Any) -> pa.Array:
    """Return ``"name":text,"name":text`` of (name, texts) pairs, one at least."""
    parts: list[Any] = []
    for name, texts in named:
        parts += [f'{"," if parts else ""}"{name}":', texts]
    return pc.binary_join_element_wise(*parts, "")


def _texts(cursor: Cursor, places: Integers, write: Callable[[bytes], str | None]) -> pa.Array:
    """Return ``write`` of the bytes at these places; null for a null place. If ``write`` returns None, the row is dropped."""
    having = np.flatnonzero(cursor.fits & (places[:, 1] >= 0))
    texts = each_once(cursor.data, places[having], write, pa.string())
    if texts.null_count:
        is_written = np.ones(len(places), np.bool_)
        is_written[having] = texts.is_valid().to_numpy(zero_copy_only=False)
        cursor.require(is_written)
    return _spread(texts, having, len(places))


def _spread(texts: pa.Array, rows: Integers, count: int) -> pa.Array:
    """Return the texts at these rows out of ``count`` rows; null at the others."""
    if len(rows) == count:
        return texts
    is_there = np.zeros(count, np.bool_)
    is_there[rows] = True
    return texts.take(places_among(is_there))


def _json_string(raw: bytes) -> str | None:
    text = utf8_or_none(raw)
    return None if text is None else json.dumps(text)


def _json_topic_id(raw: bytes) -> str:
    return json.dumps(uuid_bytes_text(raw))


def _json_bytes(raw: bytes) -> str:
    return json.dumps(encode_base64(raw))
