"""Bytes as people read them: text, JSON, MessagePack, or hex. Nothing is guessed that the bytes do not say.

Large values are cut for display. Left out: Avro and Protobuf, which need their schema. A value with the header of a schema
registry says which schema it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# The most bytes of a field that are shown.
SHOWN_BYTES: Final = 64 * 1024


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
    raise NotImplementedError
