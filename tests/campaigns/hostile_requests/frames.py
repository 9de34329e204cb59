"""Frames of requests with one array of any number of items, made without making the items.

The fields are those of a version's schema. All of them have defaults but those that are named in ``given``; the array at ``path``
has ``count`` times the same item, or items that a counter makes different from each other. So a frame of 100 MiB takes the time
of a copy. What a count says may be a lie (``claimed``).
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import request_header
from odradek.protocol.messages import FieldSpec, Layout, load
from odradek.protocol.varint import uvarint
from odradek.protocol.writers import FIXED_WIDTHS

Path = tuple[str, ...]
# Digits of the counter that makes strings different from each other.
_DIGITS = 8


class LargeArray(NamedTuple):
    """The array at ``path``: ``count`` items, strings in them of ``prefix`` and a number if they are to be ``distinct``."""

    path: Path
    count: int
    prefix: str = ""
    distinct: bool = False
    # What the count says instead.
    claimed: int | None = None


def array_paths(api_key: ApiKey, version: int) -> list[Path]:
    """Every array in a request, with the names of what it lies in."""
    return list(_arrays(load(api_key, version, "request"), ()))


def _arrays(layout: Layout, inside: Path) -> Iterator[Path]:
    for spec in layout.fields:
        path = (*inside, spec.name)
        if spec.is_array:
            yield path
        if spec.layout is not None:
            yield from _arrays(spec.layout, path)


def large_frame(
    api_key: ApiKey, version: int, large: LargeArray, given: Mapping[str, Any] | None = None, correlation_id: int = 1
) -> bytes:
    """A whole frame, its length in front. ``given`` are values of strings and numbers by their fields' names, at any depth."""
    layout = load(api_key, version, "request")
    header = request_header(api_key, version, correlation_id, "hostile", flexible=layout.flexible)
    body = header + _Writer(layout.flexible, large, given or {}).struct(layout, large.path)
    return struct.pack(">i", len(body)) + body


class _Writer:
    def __init__(self, flexible: bool, large: LargeArray, given: Mapping[str, Any]) -> None:
        self._flexible = flexible
        self._large = large
        self._given = given
        self._number = b""

    def struct(self, layout: Layout, path: Path = ()) -> bytes:
        fields = [self._field(spec, path) for spec in layout.fields if spec.tag is None]
        return b"".join(fields) + (b"\0" if self._flexible else b"")

    def _field(self, spec: FieldSpec, path: Path) -> bytes:
        if path and spec.name == path[0]:
            if len(path) == 1:
                return self._large_array(spec)
            inner = self.struct(_layout(spec), path[1:])
            return self._count(1) + inner if spec.is_array else inner
        if spec.is_array:
            return self._count(0)
        if spec.layout is not None:
            return b"\xff" if spec.nullable else self.struct(spec.layout)
        return self._value(spec)

    def _large_array(self, spec: FieldSpec) -> bytes:
        large = self._large
        count = self._count(large.count if large.claimed is None else large.claimed)
        self._number = b"\1" * _DIGITS if large.distinct else b""
        item = self.struct(spec.layout) if spec.layout is not None else self._value(spec)
        if not large.distinct or self._number not in item:
            return count + item * large.count
        before, _, behind = item.partition(self._number)
        between = behind + before
        numbers = between.join([b"%08d" % number for number in range(large.count)])
        return count + before + numbers + behind

    def _value(self, spec: FieldSpec) -> bytes:
        given = self._given.get(spec.name)
        if spec.kafka_type in FIXED_WIDTHS:
            code = FIXED_WIDTHS[spec.kafka_type]
            if code == "16s":
                return given or (self._number * 2 or bytes(16))
            return struct.pack(f">{code}", 0 if given is None else given)
        value = str(given).encode() if given is not None else self._large.prefix.encode() + self._number
        if spec.kafka_type != "string":
            return (uvarint(len(value) + 1) if self._flexible else struct.pack(">i", len(value))) + value
        return (uvarint(len(value) + 1) if self._flexible else struct.pack(">h", len(value))) + value

    def _count(self, count: int) -> bytes:
        return uvarint(count + 1) if self._flexible else struct.pack(">i", count)


def _layout(spec: FieldSpec) -> Layout:
    assert spec.layout is not None
    return spec.layout
