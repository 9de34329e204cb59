"""Readers and writers of the coordinators' values, compiled from the tables of their fields.

Kafka's names for times in these records lack the unit (milliseconds). The classes' names have it.
"""

from collections.abc import Mapping
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.readers import ReaderCompiler, ReadFrame, compile_reader
from odradek.protocol.schemas import Layout, layout_of, newest_version
from odradek.protocol.writers import Write, compile_writer

_INT16: Final = Struct(">h")
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
        chunks = [_INT16.pack(version)]
        self._write(version)(chunks.append, value)
        return b"".join(chunks)

    def decode(self, data: bytes) -> Any:  # noqa: ANN401  an instance of the value's class
        """Decode a value of any version. Raises MalformedMessage."""
        if len(data) < _VERSION_BYTES:
            raise MalformedMessage(f"{self._name} of {len(data)} bytes")
        version: int = _INT16.unpack_from(data)[0]
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
