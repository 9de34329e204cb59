"""Fields of the coordinators' records: primitive ones, read with bounds checked, and codecs of whole values.

The format of primitives is in the protocol guide, "Protocol Primitive Types":

    string, bytes                    int16 or int32 length (-1: null), then that many bytes
    compact string, bytes, array     unsigned varint length + 1 (0: null)
    tagged fields                    unsigned varint count, then per field unsigned varint tag and size, and the value

Each ``read_`` takes (data, position) and returns (value, position after it). All raise MalformedMessage.

``ValueCodec`` reads and writes values by functions compiled from the tables of their fields. Kafka's names for times in these
records lack the unit (milliseconds). The classes' names have it.
"""

from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import Layout, layout_of, newest_version
from odradek.protocol.readers import ReaderCompiler, ReadFrame, compile_reader
from odradek.protocol.writers import Write, compile_writer

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")

T = TypeVar("T")
Read = Callable[[bytes, int], tuple[T, int]]


def take(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    """Return the next ``size`` bytes and the position after them."""
    end = position + size
    if size < 0 or end > len(data):
        raise MalformedMessage(f"a field has {size} bytes, but {len(data) - position} are left")
    return data[position:end], end


def read_int16(data: bytes, position: int) -> tuple[int, int]:
    """Read two bytes, signed."""
    raw, end = take(data, position, 2)
    return _INT16.unpack(raw)[0], end


def read_int32(data: bytes, position: int) -> tuple[int, int]:
    """Read four bytes, signed."""
    raw, end = take(data, position, 4)
    return _INT32.unpack(raw)[0], end


def read_int64(data: bytes, position: int) -> tuple[int, int]:
    """Read eight bytes, signed."""
    raw, end = take(data, position, 8)
    return _INT64.unpack(raw)[0], end


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedMessage("a string is not UTF-8") from None


def read_nullable_string(data: bytes, position: int) -> tuple[str | None, int]:
    """Read a string, or None for null."""
    size, position = read_int16(data, position)
    if size == -1:
        return None, position
    raw, position = take(data, position, size)
    return _text(raw), position


def required(text: str | None) -> str:
    """Return ``text``; None is malformed."""
    if text is None:
        raise MalformedMessage("a required string is null")
    return text


def ensure_end(data: bytes, position: int) -> None:
    """Raise unless all of ``data`` has been read."""
    if position != len(data):
        raise MalformedMessage(f"{len(data) - position} bytes after the last field")


_VERSION: Final = Struct(">h")
_VERSION_BYTES: Final = 2


class ValueCodec:
    """The codec of one kind of value. ``classes`` maps Kafka's names to the classes of the value and its structs."""

    def __init__(self, table: str, classes: Mapping[str, type[Any]]) -> None:
        self._table = table
        self._classes = classes
        self._newest = newest_version(table)
        self._name = table.split(maxsplit=1)[0]
        self._read = cache(self._compiled_reader)
        self._write = cache(self._compiled_writer)

    def encode(self, value: NamedTuple, version: int = 0) -> bytes:
        """Encode the value. Raises struct.error for a value that does not fit its field."""
        chunks = [_VERSION.pack(version)]
        self._write(version)(chunks.append, value)
        return b"".join(chunks)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401  an instance of the value's class
        """Decode a value of any version. Raises MalformedMessage."""
        if len(data) < _VERSION_BYTES:
            raise MalformedMessage(f"{self._name} of {len(data)} bytes")
        version: int = _VERSION.unpack_from(data)[0]
        if not 0 <= version <= self._newest:
            raise MalformedMessage(f"version {version} of {self._name} is unknown; the newest known is {self._newest}")
        try:
            value, end = self._read(version)(data, _VERSION_BYTES)
        except MalformedMessage as error:
            raise MalformedMessage(f"cannot read {self._name}: {error.reason}") from None
        if end != len(data):
            raise MalformedMessage(f"{len(data) - end} bytes follow {self._name}")
        return value

    def _compiled_reader(self, version: int) -> ReadFrame:
        return compile_reader(self._layout(version), self._classes, compiler=_ValueCompiler)

    def _compiled_writer(self, version: int) -> Write:
        return compile_writer(self._layout(version), self._classes)

    def _layout(self, version: int) -> Layout:
        return _in_milliseconds(layout_of(self._table, version))


class _ValueCompiler(ReaderCompiler):
    # Values come from the log. A long string must not make a group unreadable.
    longest_string = 0x7FFFFFFF

    def _uuid(self, value: str) -> str:
        # Ids are sorted and compared, so the zero id stays an id.
        return f"UUID(bytes={value})"


def _in_milliseconds(layout: Layout) -> Layout:
    fields = tuple(
        spec._replace(
            name=f"{spec.name}_ms" if spec.name.endswith(("timestamp", "timeout")) else spec.name,
            layout=spec.layout and _in_milliseconds(spec.layout),
        )
        for spec in layout.fields
    )
    return Layout(layout.name, flexible=layout.flexible, fields=fields)
