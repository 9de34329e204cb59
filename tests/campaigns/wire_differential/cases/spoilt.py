"""Slices ``bytes`` and ``keys``: requests whose bytes are wrong, and APIs and versions that are not served."""

import struct
from collections.abc import Iterator
from typing import Any

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import NEWEST_VERSION, ApiKey
from odradek.protocol.messages import FieldSpec
from tests.campaigns.wire_differential import wire
from tests.campaigns.wire_differential.canonical import NAME_PREFIX
from tests.campaigns.wire_differential.cases.bases import BASES
from tests.campaigns.wire_differential.cases.paths import fields_of, replaced, value_at, versions
from tests.campaigns.wire_differential.driver import batch_bytes
from tests.campaigns.wire_differential.script import Batch, Ref, Script, Step
from tests.campaigns.wire_differential.wire import Raw

_FIRST_UNASSIGNED = 93
_MAX_FRAME = 104_857_600


def scripts() -> Iterator[Script]:
    """Both slices."""
    for api_key, version in versions():
        yield Script(f"bytes/{api_key.name}/v{version}", tuple(_spoilt(api_key, version)))
    yield Script("bytes/frames", tuple(_frames()))
    for number in (-1, *range(_FIRST_UNASSIGNED + 2), 1000, 32_767):
        yield Script(f"keys/{number}", tuple(_versions(number)))


def literal(value: Any, prefix: str) -> Any:
    """Fields without placeholders: the names begin with ``prefix``, and are those of nothing that exists."""
    if isinstance(value, str):
        return value.replace("@", prefix)
    if isinstance(value, dict):
        return {name: literal(inner, prefix) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [literal(item, prefix) for item in value]
    if isinstance(value, Ref):
        return value.default
    return batch_bytes(value, value.fields) if isinstance(value, Batch) else value


def _spoilt(api_key: ApiKey, version: int) -> Iterator[Step]:
    fields = literal(BASES[api_key].fields, f"{NAME_PREFIX}{api_key.name}-v{version}-")
    # Refused, lest it wait for the one before it, or leave a transactional id behind.
    if api_key is ApiKey.JOIN_GROUP:
        fields["session_timeout_ms"] = 1
    if api_key is ApiKey.INIT_PRODUCER_ID:
        fields["transaction_timeout_ms"] = 0
    body = wire.encode(api_key, version, fields)
    flexible = wire.is_flexible(api_key, version)
    whole: list[tuple[str, bytes]] = [("empty", b""), ("a byte more", body + b"\0"), ("8 bytes more", body + b"\xff" * 8)]
    whole += [(f"{size} bytes fewer", body[:-size]) for size in (1, 2, 5) if size < len(body)]
    whole.append(("half", body[: len(body) // 2]))
    if flexible:
        whole += [
            ("an unknown tag", body[:-1] + b"\x01\x63\x02ab"),
            ("an unknown tag twice", body[:-1] + b"\x02\x63\x00\x63\x00"),
            ("tags out of order", body[:-1] + b"\x02\x64\x00\x63\x00"),
            ("a tag beyond the end", body[:-1] + b"\x01\x63\x20ab"),
            ("more tags than there are", body[:-1] + b"\x7f"),
            ("an endless varint", body[:-1] + b"\xff" * 9),
        ]
    for path, spec in fields_of(api_key, version):
        if spec.tag is None:
            now = value_at(fields, path)
            whole += [
                (f"{'.'.join(path)}: {label}", wire.encode(api_key, version, replaced(fields, path, Raw(data))))
                for label, data in _lies(spec, now, flexible=flexible)
            ]
    for label, data in whole:
        yield Step(label, api_key, version, body=data)


def _lies(spec: FieldSpec, now: Any, *, flexible: bool) -> Iterator[tuple[str, bytes]]:
    """What cannot stand in a field."""
    if spec.is_array:
        for size in (-2, 1000, 2**31 - 1):
            yield f"count {size}", _size(size, 4, flexible=flexible)
        if not spec.nullable:
            yield "null", _size(-1, 4, flexible=flexible)
    elif spec.kafka_type in {"string", "bytes", "records"}:
        width = 2 if spec.kafka_type == "string" else 4
        for size in (-2, 30_000, 2 ** (8 * width - 1) - 1):
            yield f"length {size}", _size(size, width, flexible=flexible) + b"ab"
        if not spec.nullable:
            yield "null", _size(-1, width, flexible=flexible)
        if width == 2:
            yield "not UTF-8", _size(2, width, flexible=flexible) + b"\xff\xfe"
            yield "a surrogate", _size(3, width, flexible=flexible) + b"\xed\xa0\x80"
    elif spec.kafka_type == "bool":
        yield "2", b"\x02"
    elif spec.layout is not None and spec.nullable and now is None:
        yield "neither null nor there", b"\x07"


def _size(size: int, width: int, *, flexible: bool) -> bytes:
    if flexible:
        return wire.uvarint((size + 1) & 0xFFFFFFFF)
    return struct.pack(">h" if width == 2 else ">i", size)


def _frames() -> Iterator[Step]:
    """Frames whose length or header is wrong."""
    head = struct.pack(">hhi", ApiKey.API_VERSIONS, 0, 7)
    for size in (-1, -(2**31), 0, 1, 2, 3, 7, 8, 9, _MAX_FRAME + 1, 2**31 - 1):
        yield Step(
            f"a frame of {size} bytes", ApiKey.API_VERSIONS, 0, frame=struct.pack(">i", size) + head[: max(0, min(size, 8))]
        )
    for label, name in (
        ("no client id", b""),
        ("half a client id length", b"\0"),
        ("a null client id", b"\xff\xff"),
        ("a client id of length -2", b"\xff\xfe"),
        ("a client id beyond the end", b"\0\x09abc"),
        ("a client id that is not UTF-8", b"\0\x02\xff\xfe"),
        ("an empty client id", b"\0\0"),
    ):
        yield Step(label, ApiKey.API_VERSIONS, 0, frame=struct.pack(">i", 8 + len(name)) + struct.pack(">hhi", 18, 0, 0) + name)
    flexible = struct.pack(">hhi", ApiKey.API_VERSIONS, 3, 0) + b"\xff\xff"
    body = b"\x02a\x02b\0"
    for label, tags in (
        ("header tags", b"\x01\x63\x02ab"),
        ("header tags beyond the end", b"\x01\x63\x7f"),
        ("no header tags", b""),
    ):
        yield Step(label, ApiKey.API_VERSIONS, 3, frame=struct.pack(">i", len(flexible + tags + body)) + flexible + tags + body)


def _versions(number: int) -> Iterator[Step]:
    """Versions of an API key that odradek does not serve."""
    try:
        key: ApiKey | int = ApiKey(number)
    except ValueError:
        key = number
    newest = NEWEST_VERSION[key] if isinstance(key, ApiKey) else 0
    for version in (-1, *range(newest + 3), 32_767):
        served = SERVED.get(key) if isinstance(key, ApiKey) else None
        if served is None or not served.min_version <= version <= served.max_version:
            yield Step(f"v{version}", key, version, body=_default_body(key, version))


def _default_body(key: ApiKey | int, version: int) -> bytes:
    """The request with every field's default, if there is such a version."""
    if not isinstance(key, ApiKey):
        return b""
    try:
        return wire.encode(key, version, {})
    except ValueError:
        return b""
