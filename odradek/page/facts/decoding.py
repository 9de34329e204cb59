"""Bytes as people read them: text, JSON, MessagePack, or hex. Nothing is guessed that the bytes do not say.

Large values are cut for display. Left out: Avro and Protobuf, which need their schema. A value with the header of a schema
registry (a zero byte and the schema's id) says which schema it needs.

MessagePack is read by the library ``msgpack``, if it is installed. Only maps and arrays count as MessagePack: any byte is the
MessagePack of some number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# The most bytes of a field that are shown.
SHOWN_BYTES: Final = 64 * 1024
_REGISTRY_BYTES: Final = 5
# The first bytes of maps and arrays in MessagePack.
_MAPS_AND_ARRAYS: Final = (*range(0x80, 0xA0), *range(0xDC, 0xE0))
_WHITE: Final = frozenset("\t\n\r")


class Format(StrEnum):
    """The way a field is shown."""

    NULL = "null"
    EMPTY = "empty"
    TEXT = "text"
    JSON = "JSON"
    MESSAGEPACK = "MessagePack"
    HEX = "hex"


@dataclass(frozen=True, slots=True)
class Shown:
    """A field for display. ``size_bytes`` is its true size, of which ``text`` shows the first part if ``is_cut``.

    ``note`` says what the reader should know: a schema that is unknown, a library that is not installed. ``text`` may have any
    character: control characters, right-to-left marks, markup.
    """

    format: Format
    text: str
    size_bytes: int
    is_cut: bool = False
    note: str = ""


def show(data: bytes | None, wanted: Format | None = None, limit_bytes: int = SHOWN_BYTES) -> Shown:
    """Return a field for display, in the ``wanted`` format if the bytes allow it."""
    if data is None:
        return Shown(Format.NULL, "null", 0)
    if not data:
        return Shown(Format.EMPTY, "", 0)
    attempts = _ATTEMPTS if wanted is None else [*(each for each in _ATTEMPTS if each is _ATTEMPT_AT.get(wanted)), _as_hex]
    note = "" if wanted in (None, Format.HEX) else f"these bytes are not {wanted}"
    for attempt in attempts:
        found = attempt(data, limit_bytes)
        if found is not None:
            return found if found.format is wanted or wanted is None else _noted(found, note)
    return _as_hex(data, limit_bytes)


def _noted(shown: Shown, note: str) -> Shown:
    return Shown(shown.format, shown.text, shown.size_bytes, shown.is_cut, note or shown.note)


def _as_json(data: bytes, limit_bytes: int) -> Shown | None:
    """Return JSON, indented if it is not cut. Objects and arrays only: a number is text."""
    first = data[:64].lstrip()[:1]
    if first not in (b"{", b"[") or len(data) > limit_bytes:
        return None
    try:
        text = _dumped(json.loads(data))
    except (ValueError, RecursionError):
        return None
    return Shown(Format.JSON, text, len(data))


def _dumped(document: object) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8.
        return json.dumps(document, indent=2)
    return text


def _as_text(data: bytes, limit_bytes: int) -> Shown | None:
    shown = data[:limit_bytes]
    is_cut = len(data) > limit_bytes
    try:
        text = shown.decode()
    except UnicodeDecodeError as error:
        # A character may be cut in two.
        if not is_cut or error.start < len(shown) - 3:
            return None
        text = shown[: error.start].decode()
    if any(character < " " and character not in _WHITE for character in text):
        return None
    return Shown(Format.TEXT, text, len(data), is_cut)


def _as_messagepack(data: bytes, limit_bytes: int) -> Shown | None:
    if data[0] not in _MAPS_AND_ARRAYS or len(data) > limit_bytes:
        return None
    unpack = _unpacker()
    if unpack is None:
        return None
    try:
        text = json.dumps(unpack(data), indent=2, ensure_ascii=False, default=_plain)
        text.encode()
    except Exception:  # noqa: BLE001  the library raises errors of many classes for bytes that are not MessagePack
        return None
    return Shown(Format.MESSAGEPACK, text, len(data))


@cache
def _unpacker() -> Callable[[bytes], Any] | None:
    try:
        from msgpack import unpackb  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    return lambda data: unpackb(data, raw=False, strict_map_key=False, timestamp=0)


def _plain(value: object) -> str:
    """Return a value that JSON lacks: bytes, a time, an extension."""
    return value.hex(" ") if isinstance(value, bytes) else str(value)


def _as_hex(data: bytes, limit_bytes: int) -> Shown:
    # Each byte takes three characters.
    shown = data[: max(limit_bytes // 3, 1)]
    return Shown(Format.HEX, shown.hex(" "), len(data), len(shown) < len(data), _note_on(data))


def _note_on(data: bytes) -> str:
    if data[0] == 0 and len(data) >= _REGISTRY_BYTES:
        schema = int.from_bytes(data[1:_REGISTRY_BYTES], "big")
        return f"may be Avro, Protobuf or JSON with schema {schema} of a schema registry, which this page does not know"
    if data[0] in _MAPS_AND_ARRAYS and _unpacker() is None:
        return "may be MessagePack: pip install 'odradek[msgpack]' shows it"
    return ""


_ATTEMPTS: Final[tuple[Callable[[bytes, int], Shown | None], ...]] = (_as_json, _as_text, _as_messagepack, _as_hex)
_ATTEMPT_AT: Final[dict[Format, Callable[[bytes, int], Shown | None]]] = {
    Format.JSON: _as_json,
    Format.TEXT: _as_text,
    Format.MESSAGEPACK: _as_messagepack,
    Format.HEX: _as_hex,
}
