"""The records that ``odradek produce`` takes: arguments, lines, JSON lines, or whole files.

A JSON line is an object with any of ``key``, ``value``, ``headers``, ``partition`` and ``timestamp`` (ms since the epoch), as
``odradek consume --json`` writes it. Text is written as UTF-8, null as null, and any other value as JSON. ``key_base64`` and
``value_base64`` have bytes. ``headers`` is an object, or a list of [name, value], where a value may be {"base64": ...}.

A pipe is read as far as there is something to read, so a record goes out as soon as its line is complete.
"""

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from odradek.cli.options import CannotWork
from odradek.client.producer import PartitionedRecord
from odradek.protocol.records import Record
from odradek.protocol.texts import decode_base64

Headers = tuple[tuple[str, bytes | None], ...]

_CHUNK_BYTES: Final = 1024 * 1024
_FIELDS: Final = frozenset({"key", "value", "headers", "partition", "timestamp", "key_base64", "value_base64"})
# The other fields of ``odradek consume --json``.
_IGNORED: Final = frozenset({"topic", "offset"})
_PAIR: Final = 2


class InvalidInput(CannotWork):
    """A record that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordShape:
    """The way from an input to a record, and the parts that all records have in common."""

    key: bytes | None = None
    key_separator: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    is_json: bool = False
    empty_is_null: bool = False


class RecordParser:
    """Makes records of inputs. ``now_ms`` gives their timestamps."""

    def __init__(self, shape: RecordShape, now_ms: Callable[[], int]) -> None:
        self._shape = shape
        self._now_ms = now_ms
        self._line = 0

    def parse(self, inputs: Iterable[bytes]) -> list[PartitionedRecord]:
        """Return the records. Raises InvalidInput, with the number of the line."""
        shape, now_ms = self._shape, self._now_ms()
        if shape.is_json:
            return [self._parse_json(line, now_ms) for line in inputs]
        partition, headers, key, separator = shape.partition, shape.headers, shape.key, shape.key_separator
        if separator is None and not shape.empty_is_null:
            return [(partition, Record(-1, now_ms, key, value, headers)) for value in inputs]
        return [(partition, self._split(line, now_ms)) for line in inputs]

    def _split(self, line: bytes, now_ms: int) -> Record:
        self._line += 1
        shape, key, value = self._shape, self._shape.key, line
        if shape.key_separator is not None:
            start, found, rest = line.partition(shape.key_separator)
            if not found:
                raise InvalidInput(
                    f"record {self._line}: no {shape.key_separator.decode()!r} between key and value: {_cut(line)}"
                )
            key, value = start, rest
        return Record(-1, now_ms, key, None if shape.empty_is_null and not value else value, shape.headers)

    def _parse_json(self, line: bytes, now_ms: int) -> PartitionedRecord:
        self._line += 1
        try:
            content = json.loads(line)
            if not isinstance(content, dict):
                raise InvalidInput(f"record {self._line}: not a JSON object: {_cut(line)}")
            if unknown := content.keys() - _FIELDS - _IGNORED:
                raise InvalidInput(f"record {self._line}: unknown field {min(unknown)}; known are {', '.join(sorted(_FIELDS))}")
            partition = content.get("partition", self._shape.partition)
            record = Record(
                -1,
                int(content.get("timestamp", now_ms)),
                _field(content, "key", self._shape.key),
                _field(content, "value", None),
                (*self._shape.headers, *_headers(content.get("headers") or ())),
            )
            return None if partition is None else int(partition), record
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"record {self._line}: {error}: {_cut(line)}") from error


def _field(content: dict[str, Any], name: str, otherwise: bytes | None) -> bytes | None:
    if f"{name}_base64" in content:
        return decode_base64(content[f"{name}_base64"])
    return encoded(content[name]) if name in content else otherwise


def encoded(value: object) -> bytes | None:
    """Return text as UTF-8, None as None, anything else as JSON."""
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def _headers(content: Any) -> Iterable[tuple[str, bytes | None]]:  # noqa: ANN401  any JSON
    pairs: Iterable[Any] = content.items() if isinstance(content, dict) else content
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != _PAIR or not isinstance(pair[0], str):
            raise ValueError("headers are an object, or a list of [name, value]")
        name, value = pair
        yield name, decode_base64(value["base64"]) if isinstance(value, dict) and "base64" in value else encoded(value)


def _cut(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= 80 else f"{text[:80]}..."


async def read_lines(stream: BinaryIO) -> AsyncIterator[Sequence[bytes]]:
    """Yield the lines that are there, without their ends; the last one may lack its end."""
    rest = b""
    async for chunk in read_chunks(stream):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def read_chunks(stream: BinaryIO) -> AsyncIterator[bytes]:
    """Yield what is there to read. A pipe or a terminal is waited for on the event loop, so Ctrl-C works."""
    try:
        descriptor = stream.fileno()
    except OSError:
        # A stream in memory.
        yield stream.read()
        return
    waits = _can_be_waited_for(descriptor)
    while True:
        if waits:
            await _readable(descriptor)
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def _can_be_waited_for(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
