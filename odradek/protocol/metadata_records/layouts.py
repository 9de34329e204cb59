"""The layout of a metadata record in each version, and the reader that makes its dataclass."""

from dataclasses import MISSING, Field, fields
from functools import lru_cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from odradek.protocol.metadata_records.base import Nested
from odradek.protocol.readers import ReaderCompiler, ReadFrame, compile_reader
from odradek.protocol.schemas import FieldSpec, Layout


def compile_record_reader(record_type: type[Any], version: int) -> ReadFrame:
    """``read(value, position)``: the record of that version at ``position``, and its end. Raises MalformedMessage."""
    return compile_reader(layout(record_type, version), _classes(record_type), compiler=_RecordCompiler)


class _RecordCompiler(ReaderCompiler):
    # No client sends a record, and none is lost for the length of a config's value.
    longest_string = 0x7FFFFFFF

    def _fields_of_target(self) -> tuple[tuple[str, ...], dict[str, Any]]:
        known = fields(self._target)
        return tuple(each.name for each in known), {each.name: each.default for each in known}

    def _uuid(self, value: str) -> str:
        self._scope["id_of"] = _id_of
        return f"id_of({value})"

    def _made(self) -> str:
        return f"target({', '.join(f'{name}=f_{name}' for name in self._fields)})"


def _classes(record_type: type[Any]) -> dict[str, type[Any]]:
    """A record's class and those of its parts, by name."""
    found = {record_type.__name__: record_type}
    for hint in get_type_hints(record_type).values():
        for part in get_args(hint):
            if isinstance(part, type) and issubclass(part, Nested):
                found |= _classes(part)
    return found


# Thousands of partitions have the same topic and the same directories. In a request the zero id is no id; here it stands for an
# unassigned directory.
@lru_cache(maxsize=1024)
def _id_of(data: bytes) -> UUID:
    return UUID(bytes=data)


def layout(record_type: type[Any], version: int) -> Layout:
    """A record, or a part of one, as it is in that version."""
    hints = get_type_hints(record_type)
    known = [each for each in fields(record_type) if each.metadata.get("since", 0) <= version]
    return Layout(record_type.__name__, flexible=True, fields=tuple(_spec(each, hints[each.name], version) for each in known))


def _spec(field: "Field[Any]", hint: Any, version: int) -> FieldSpec:  # noqa: ANN401  a type, in whatever form
    nullable = NoneType in get_args(hint)
    if nullable:
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    is_array = get_origin(hint) is tuple
    if is_array:
        hint = get_args(hint)[0]
    return FieldSpec(
        name=field.name,
        kafka_type=field.metadata.get("kafka_type"),
        layout=layout(hint, version) if issubclass(hint, Nested) else None,
        is_array=is_array,
        nullable=nullable,
        tag=field.metadata.get("tag"),
        default=None if field.default is MISSING else field.default,
    )
