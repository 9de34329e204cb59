r"""The ways ``odradek consume`` writes a record: as its value, by a format string, as a JSON object, or by a jq program.

A format string has kcat's tokens, and escapes such as ``\n``, ``\t`` and ``\x00``:

    %t topic      %p partition      %o offset        %T timestamp, ms since the epoch    %d the same, in ISO 8601
    %k key        %v or %s value    %h headers, as name=value,name=value
    %K, %S        bytes of the key and of the value, -1 for null                         %% a percent sign
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import click

from odradek.client.known_cluster import Partition
from odradek.protocol.records import Record
from odradek.protocol.texts import encode_base64, utf8_or_none

Render: TypeAlias = Callable[[Partition, Record], bytes]
"""A function that returns the output of a record, with its end of line."""

_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)


class InvalidFormat(Exception):
    """A format string with an unknown token."""


def unescaped(text: str) -> bytes:
    r"""Return the bytes of a text with ``\n``, ``\t``, ``\r``, ``\0``, ``\\`` and ``\xHH`` replaced."""
    data, end = b"", 0
    for match in _ESCAPE.finditer(text):
        data += text[end : match.start()].encode(errors="surrogateescape")
        digits, letter = match.groups()
        data += bytes.fromhex(digits) if digits else _ESCAPES.get(letter, match.group().encode())
        end = match.end()
    return data + text[end:].encode(errors="surrogateescape")


def plain(_partition: Partition, record: Record) -> bytes:
    """Return the value in a line; an empty line for null."""
    return (record.value or b"") + b"\n"


def compiled_format(text: str, *, as_hex: bool) -> Render:
    """Return the function for a format string. Raises InvalidFormat."""
    tokens: dict[str, Render] = {
        "t": lambda partition, _: partition[0].encode(),
        "p": lambda partition, _: b"%d" % partition[1],
        "o": lambda _, record: b"%d" % record.offset,
        "T": lambda _, record: b"%d" % record.timestamp,
        "d": lambda _, record: iso_time(record.timestamp).encode(),
        "k": lambda _, record: record.key or b"",
        "v": lambda _, record: record.value or b"",
        "h": lambda _, record: headers_text(record),
        "K": lambda _, record: b"%d" % _size(record.key),
        "S": lambda _, record: b"%d" % _size(record.value),
        "%": lambda _, __: b"%",
    }
    if as_hex:
        tokens["k"] = lambda _, record: (record.key or b"").hex().encode()
        tokens["v"] = lambda _, record: (record.value or b"").hex().encode()
    tokens["s"] = tokens["v"]
    parts: list[Render] = []
    for number, part in enumerate(re.split(r"%(.?)", text, flags=re.DOTALL)):
        if number % 2 == 0:
            parts.append(_literal(unescaped(part)))
        elif part in tokens:
            parts.append(tokens[part])
        else:
            raise InvalidFormat(f"%{part} is no token; tokens: {' '.join(f'%{token}' for token in tokens)}")
    return lambda partition, record: b"".join([part(partition, record) for part in parts])


def _literal(data: bytes) -> Render:
    return lambda _, __: data


def as_json(partition: Partition, record: Record) -> bytes:
    """Return a JSON object in a line. Bytes that are not UTF-8 are in ``key_base64`` and ``value_base64``."""
    document = {
        "topic": partition[0],
        "partition": partition[1],
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_field("key", record.key),
        **_field("value", record.value),
        "headers": [[name, _header(value)] for name, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def iso_time(timestamp_ms: int) -> str:
    """Return a time in UTC, such as ``2026-11-27T09:30:00.123Z``; "-" for none, and the number if no calendar has it."""
    if timestamp_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)


def headers_text(record: Record) -> bytes:
    """Return the headers as ``name=value,name=value``."""
    return b",".join(name.encode() + b"=" + (b"" if value is None else value) for name, value in record.headers)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _field(name: str, data: bytes | None) -> dict[str, Any]:
    text = utf8_or_none(data)
    if data is not None and text is None:
        return {f"{name}_base64": encode_base64(data)}
    return {name: text}


def _header(data: bytes | None) -> Any:  # noqa: ANN401  a part of a JSON document
    text = utf8_or_none(data)
    return {"base64": encode_base64(data)} if data is not None and text is None else text


def jq_filter(program: str) -> Render:
    """Return the function of a jq program, by the library jq (the extra ``jq``). Raises click.ClickException.

    A record without a result is left out.
    """
    compiled = _compiled_jq(program)

    def render(partition: Partition, record: Record) -> bytes:
        if record.value is None:
            return b""
        try:
            results: list[object] = compiled.input_value(json.loads(record.value)).all()
        except ValueError as error:
            place = f"{partition[0]}-{partition[1]} at offset {record.offset}"
            raise click.ClickException(f"{place}: jq: {error}; --value-filter leaves records out") from error
        return b"".join(json.dumps(result, ensure_ascii=False).encode() + b"\n" for result in results)

    return render


def _compiled_jq(program: str) -> Any:  # noqa: ANN401  the library has no types
    try:
        from jq import compile as compile_program  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise click.UsageError("--jq needs the library jq: pip install 'odradek[jq]'") from None
    try:
        return compile_program(program)
    except ValueError as error:
        raise click.UsageError(f"--jq {program}: {error}") from error
