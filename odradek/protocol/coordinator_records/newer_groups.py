"""The records of consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071) on ``__consumer_offsets``, keys 3 to 23.

    key      int16 version, which is the kind | string group id | string member id, or a regular expression, in some kinds
    value    int16 version, 0 | fields | tagged fields

Also the states of share partitions on ``__share_group_state``, keys 0 and 1 (``SHARE_STATE_KINDS``). Their key goes on with a
topic id and a partition.

All values are flexible. The tables of fields decode them into dictionaries under Kafka's names, for display. A broker without
such groups does not import this module. Topic ids are in Kafka's base64, bytes in base64. Tagged fields missing in the table are
skipped. Those missing in a record are missing in the dictionary.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from odradek.protocol.coordinator_records.fields import (
    Read,
    ensure_end,
    read_compact_bytes,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_compact_string,
    read_nullable_string,
    read_tagged_fields,
    required,
    take,
)
from odradek.protocol.coordinator_records.tables import KEYS, SHARE_STATE_KEYS, SHARE_STATE_VALUES, VALUES
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import FieldSpec, Layout, layout_of
from odradek.protocol.texts import encode_base64, uuid_bytes_text
from odradek.protocol.varint import read_uvarint

# FieldSpec and Layout are for the pipeline, which imports nothing else from ``protocol``.
__all__ = ["KINDS", "SHARE_STATE_KINDS", "VALUE_VERSION", "FieldSpec", "Kind", "Layout", "NewerRecord", "decode_newer"]

VALUE_VERSION: Final = 0


class Kind(NamedTuple):
    """A kind of record: the fields of its key, none of them compact, and its value."""

    name: str
    key: tuple[FieldSpec, ...]
    value: Layout


class NewerRecord(NamedTuple):
    """A decoded record. ``value`` is None for a tombstone."""

    kind: str
    key: dict[str, Any]
    value: dict[str, Any] | None
    value_version: int | None


def _kind(key_table: str, value_table: str) -> Kind:
    key = layout_of(key_table, 0)
    name = re.sub("(?<!^)([A-Z])", r"_\1", key.name.removesuffix("Key")).lower()
    return Kind(name, tuple(key.fields), layout_of(value_table, VALUE_VERSION))


# By the key's version.
KINDS: Final = {version: _kind(key, VALUES[version]) for version, key in KEYS.items()}
SHARE_STATE_KINDS: Final = {version: _kind(key, SHARE_STATE_VALUES[version]) for version, key in SHARE_STATE_KEYS.items()}


def _read_int8(data: bytes, position: int) -> tuple[int, int]:
    raw, end = take(data, position, 1)
    return int.from_bytes(raw, "big", signed=True), end


def _read_uint16(data: bytes, position: int) -> tuple[int, int]:
    raw, end = take(data, position, 2)
    return int.from_bytes(raw, "big"), end


def _read_uuid(data: bytes, position: int) -> tuple[str, int]:
    raw, end = take(data, position, 16)
    return uuid_bytes_text(raw), end


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    text, end = read_nullable_compact_string(data, position)
    return required(text), end


def _read_bytes(data: bytes, position: int) -> tuple[str, int]:
    raw, end = read_compact_bytes(data, position)
    return encode_base64(raw), end


_READ: Final[dict[str, Read[Any]]] = {
    "int8": _read_int8,
    "uint16": _read_uint16,
    "int16": read_int16,
    "int32": read_int32,
    "int64": read_int64,
    "uuid": _read_uuid,
    "string": _read_string,
    "bytes": _read_bytes,
}


def _reader(spec: FieldSpec) -> Read[Any]:
    if spec.is_array:
        return _array_reader(_reader(spec._replace(is_array=False, nullable=False)))
    if spec.layout is not None:
        read = _struct_reader(spec.layout)
        return _nullable_reader(read) if spec.nullable else read
    if spec.kafka_type == "string" and spec.nullable:
        return read_nullable_compact_string
    return _READ[spec.kafka_type or ""]


def _array_reader(element: Read[Any]) -> Read[list[Any] | None]:
    def read(data: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, position = read_uvarint(data, position)
        if count == 0:
            return None, position
        # An element takes one byte at least.
        if count - 1 > len(data) - position:
            raise MalformedMessage(f"an array has {count - 1} items, but {len(data) - position} bytes are left")
        found = []
        for _ in range(count - 1):
            one, position = element(data, position)
            found.append(one)
        return found, position

    return read


def _struct_reader(layout: Layout) -> Read[dict[str, Any]]:
    fields = {spec.name: _reader(spec) for spec in layout.fields if spec.tag is None}
    known = {spec.tag: (spec.name, _reader(spec)) for spec in layout.fields if spec.tag is not None}

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        for name, read_field in fields.items():
            found[name], position = read_field(data, position)
        by_tag, position = read_tagged_fields(data, position)
        for tag, raw in by_tag.items():
            if tag in known:
                name, read_field = known[tag]
                found[name], end = read_field(raw, 0)
                ensure_end(raw, end)
        return found, position

    return read


def _nullable_reader(read_struct: Read[dict[str, Any]]) -> Read[dict[str, Any] | None]:
    def read(data: bytes, position: int) -> tuple[dict[str, Any] | None, int]:
        presence, position = _read_int8(data, position)
        return (None, position) if presence < 1 else read_struct(data, position)

    return read


@cache
def _value_reader(layout: Layout) -> Read[dict[str, Any]]:
    return _struct_reader(layout)


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    text, end = read_nullable_string(data, position)
    return required(text), end


_READ_OF_KEY: Final[dict[str | None, Read[Any]]] = {"string": _read_text, "uuid": _read_uuid, "int32": read_int32}


def decode_newer(key: bytes, value: bytes | None, kinds: Mapping[int, Kind] = KINDS) -> NewerRecord:
    """Decode a record of one of these kinds. Raises MalformedMessage, also for an unknown version."""
    key_version, position = read_int16(key, 0)
    if key_version not in kinds:
        raise MalformedMessage(f"the key's version, {key_version}, does not exist in Kafka 4.4")
    kind, of_key, layout = kinds[key_version]
    named = {}
    for spec in of_key:
        named[spec.name], position = _READ_OF_KEY[spec.kafka_type](key, position)
    ensure_end(key, position)
    if value is None:
        return NewerRecord(kind, named, None, None)
    value_version, position = read_int16(value, 0)
    if value_version != VALUE_VERSION:
        raise MalformedMessage(f"the value of {kind} has version {value_version}, not {VALUE_VERSION}")
    fields, position = _value_reader(layout)(value, position)
    ensure_end(value, position)
    return NewerRecord(kind, named, fields, value_version)
