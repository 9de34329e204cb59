"""Requests to bytes and responses to plain values, by Kafka's definitions and without odradek's codecs.

A request's fields are a dictionary, with the names of ``protocol.messages``. A field that the version does not have is passed
over, so one dictionary serves all versions. In the place of any value there may be ``Raw`` bytes: that is how counts lie and
strings are no UTF-8.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import OF_FIELDS, FieldSpec, Layout, load

CLIENT_ID = "wire"
_NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint16": ">H",
    "uint32": ">I",
    "float64": ">d",
    "bool": ">?",
}


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that stand on the wire in the place of a field."""

    data: bytes


@cache
def request_fields(api_key: ApiKey, version: int) -> tuple[FieldSpec, ...]:
    """The fields of a request in wire order."""
    return load(api_key, version, "request").fields


@cache
def is_flexible(api_key: ApiKey, version: int) -> bool:
    """Whether the version has compact lengths and tagged fields (KIP-482)."""
    return load(api_key, version, "request").flexible


def frame(api_key: int, version: int, correlation_id: int, body: bytes, *, flexible: bool) -> bytes:
    """A whole frame: length, request header, body."""
    name = CLIENT_ID.encode()
    head = struct.pack(">hhih", api_key, version, correlation_id, len(name)) + name + (b"\0" if flexible else b"")
    return struct.pack(">i", len(head) + len(body)) + head + body


def encode(api_key: ApiKey, version: int, fields: Mapping[str, Any]) -> bytes:
    """The body of a request."""
    return _struct(request_fields(api_key, version), fields, flexible=is_flexible(api_key, version))


def _struct(specs: tuple[FieldSpec, ...], fields: Mapping[str, Any], *, flexible: bool) -> bytes:
    chunks, tagged = [], []
    for spec in specs:
        if spec.tag is None:
            chunks.append(_field(spec, fields.get(spec.name, _default(spec)), flexible=flexible))
        elif spec.name in fields:
            tagged.append((spec.tag, _field(spec, fields[spec.name], flexible=flexible)))
    if flexible:
        chunks.append(uvarint(len(tagged)))
        chunks += [uvarint(tag) + uvarint(len(data)) + data for tag, data in sorted(tagged)]
    return b"".join(chunks)


def _default(spec: FieldSpec) -> Any:
    return {} if spec.default is OF_FIELDS else spec.default


def _field(spec: FieldSpec, value: Any, *, flexible: bool) -> bytes:
    if isinstance(value, Raw):
        return value.data
    if not spec.is_array:
        return _item(spec, value, flexible=flexible)
    if value is None:
        return uvarint(0) if flexible else b"\xff\xff\xff\xff"
    items = b"".join(_item(spec, item, flexible=flexible) for item in value)
    return count(len(value), flexible=flexible) + items


def count(size: int, *, flexible: bool) -> bytes:
    """The number of elements in front of an array; -1 is null."""
    return uvarint(size + 1) if flexible else struct.pack(">i", size)


def _item(spec: FieldSpec, value: Any, *, flexible: bool) -> bytes:
    kind = spec.kafka_type
    if isinstance(value, Raw):
        return value.data
    if kind is None:
        assert spec.layout is not None
        if isinstance(value, list):
            # A path through a struct that was not there (``cases.paths.replaced``).
            (value,) = value
        if spec.nullable and not spec.is_array and spec.tag is None:
            return b"\xff" if value is None else b"\x01" + _struct(spec.layout.fields, value, flexible=flexible)
        return _struct(spec.layout.fields, value or {}, flexible=flexible)
    if kind in _NUMBERS:
        return struct.pack(_NUMBERS[kind], value)
    if kind == "uuid":
        return (UUID(int=0) if value is None else value).bytes
    data = value.encode() if isinstance(value, str) else value
    return _sized(data, 2 if kind == "string" else 4, flexible=flexible)


def _sized(data: bytes | None, width: int, *, flexible: bool) -> bytes:
    size = -1 if data is None else len(data)
    front = uvarint(size + 1) if flexible else struct.pack(">h" if width == 2 else ">i", size)
    return front + (data or b"")


def uvarint(value: int) -> bytes:
    """An unsigned varint of up to 32 bits."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(api_key: ApiKey, version: int, data: bytes) -> dict[str, Any]:
    """A response frame, without its length, as dictionaries, lists and values; ValueError or IndexError if it is none."""
    layout = load(api_key, version, "response")
    flexible = layout.flexible
    reader = _Reader(data, flexible=flexible)
    reader.position = 4
    if flexible and api_key is not ApiKey.API_VERSIONS and reader.uvarint():
        raise ValueError("tagged fields in a response header")
    message = reader.struct(layout)
    if reader.position != len(data):
        raise ValueError("more than a response")
    return message


class _Reader:
    def __init__(self, data: bytes, *, flexible: bool) -> None:
        self._data = data
        self._flexible = flexible
        self.position = 0

    def struct(self, layout: Layout) -> dict[str, Any]:
        specs = layout.fields
        values = {spec.name: self._field(spec) if spec.tag is None else _unsent(spec) for spec in specs}
        if self._flexible:
            by_tag = {spec.tag: spec for spec in specs}
            for _ in range(self.uvarint()):
                tag, size = self.uvarint(), self.uvarint()
                end = self.position + size
                if tag in by_tag:
                    values[by_tag[tag].name] = self._field(by_tag[tag])
                else:
                    values[f"tag {tag}"] = self._take(size)
                if self.position != end:
                    raise ValueError("a tagged field of another size")
        return values

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _field(self, spec: FieldSpec) -> Any:
        if not spec.is_array:
            return self._item(spec)
        size = self._length(4)
        return None if size < 0 else [self._item(spec) for _ in range(size)]

    def _item(self, spec: FieldSpec) -> Any:
        kind = spec.kafka_type
        if kind is None:
            assert spec.layout is not None
            is_nullable = spec.nullable and not spec.is_array and spec.tag is None
            return None if is_nullable and self._take(1) == b"\xff" else self.struct(spec.layout)
        if kind in _NUMBERS:
            (value,) = struct.unpack(_NUMBERS[kind], self._take(struct.calcsize(_NUMBERS[kind])))
            return value
        if kind == "uuid":
            return UUID(bytes=self._take(16))
        size = self._length(2 if kind == "string" else 4)
        if size < 0:
            return None
        data = self._take(size)
        return data.decode() if kind == "string" else data

    def _length(self, width: int) -> int:
        return self.uvarint() - 1 if self._flexible else int.from_bytes(self._take(width), "big", signed=True)

    def _take(self, size: int) -> bytes:
        self.position += size
        if self.position > len(self._data):
            raise IndexError("past the end")
        return self._data[self.position - size : self.position]


def _unsent(spec: FieldSpec) -> Any:
    """What a tagged field is that was not sent."""
    if spec.is_array:
        return [] if spec.default == () else spec.default
    if spec.layout is None:
        return UUID(int=0) if spec.kafka_type == "uuid" else spec.default
    return None if spec.nullable else {inner.name: _unsent(inner) for inner in spec.layout.fields}
