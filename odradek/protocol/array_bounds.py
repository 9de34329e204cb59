"""Whether the arrays of a request can be as long as they say, found out before kio reads it.

kio's decoder takes memory for an array by the count in front of it, before it has seen one item: twenty bytes that announce four
billion topics end the process, by an abort that nothing can catch. Each item takes a byte at least, so a count above the bytes
that are left is a lie. kio also lets any array be null, which no handler expects.

``compile_array_check`` makes, for one of kio's classes, a flat function that walks over a message as kio will, steps over
whatever is no array, builds nothing, and stops behind the last array.

It goes exactly where kio goes, quirks included (a struct is null for -1 only; of a known tagged field the value counts, not the
size, which must agree here), since a count that only one of the two takes for a count would get past it.

    string, bytes        int16 or int32 length (negative: null), compact: uvarint length + 1 (0: null)
    array                int32 count (negative: null), compact: uvarint count + 1 (0: null)
    nullable struct      int8 -1 for null (KIP-893)
    tagged fields        uvarint count, then per field uvarint tag, uvarint size, value (KIP-482)
"""

import struct
from collections.abc import Callable
from typing import Any

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.schemas import FieldSpec, field_specs
from odradek.protocol.varint import read_uvarint

Check = Callable[[bytes | memoryview, int], None]
_Walk = Callable[[bytes | memoryview, int, int], int]

_SIZES = {
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float64": 8,
    "bool": 1,
    "error_code": 2,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}


def compile_array_check(entity: type[Any]) -> Check | None:
    """``check(frame, position)``, which raises MalformedMessage; None for an ``entity`` without arrays.

    A frame that ends early, or holds what no field may, passes as long as its arrays are possible: kio refuses it in its turn.
    """
    if not _holds_array(entity):
        return None
    walk = _compile(_Source().struct(entity, more=False))

    def check(frame: bytes | memoryview, position: int) -> None:
        try:
            walk(frame, position, len(frame))
        except (IndexError, struct.error):
            raise MalformedMessage("a request ends before its fields do") from None

    return check


def _holds_array(entity: type[Any]) -> bool:
    return any(_is_or_holds_array(spec) for spec in field_specs(entity))


def _is_or_holds_array(spec: FieldSpec) -> bool:
    return spec.is_array or (spec.entity is not None and _holds_array(spec.entity))


def _refuse(count: int, left: int) -> None:
    raise MalformedMessage(f"an array of {count} items in {left} bytes")


def _compile(source: "_Source") -> _Walk:
    """``walk(frame, position, end)``, which returns the position it comes to."""
    body = "\n".join(f"    {line}" for line in source.lines)
    exec(f"def walk(b, p, end):\n{body}\n    return p\n", source.scope)  # noqa: S102  nothing in it comes from outside
    return source.scope["walk"]  # type: ignore[no-any-return]


class _Source:
    """The lines of a walk as they grow, and what they refer to: ``b`` the frame, ``p`` the position, ``end`` the frame's."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"uvarint": read_uvarint, "refuse": _refuse, "int32": struct.Struct(">i").unpack_from}
        self._indent = ""
        self._skip_bytes = 0

    def struct(self, entity: type[Any], *, more: bool) -> "_Source":
        """Walk over a struct: all of it where ``more`` follows that matters, else up to its last array."""
        specs = field_specs(entity)
        fields = [spec for spec in specs if spec.tag is None]
        tagged = [spec for spec in specs if spec.tag is not None]
        more = more or any(_is_or_holds_array(spec) for spec in tagged)
        last = max((index for index, spec in enumerate(fields) if _is_or_holds_array(spec)), default=-1)
        for index, spec in enumerate(fields if more else fields[: last + 1]):
            self.field(spec, flexible=bool(entity.__flexible__), more=more or index < last)
        self.flush()
        if more and entity.__flexible__:
            self._tagged_fields(tagged)
        return self

    def field(self, spec: FieldSpec, *, flexible: bool, more: bool) -> None:
        """Walk over one field."""
        if spec.is_array:
            self._array(spec, flexible=flexible, more=more)
        elif spec.entity is None:
            self._plain(spec.kafka_type or "", flexible=flexible)
        elif spec.nullable:
            self._line("p += 1")
            self._line("if b[p - 1] != 255:")
            self._nested(spec.entity, more=more)
        else:
            self.struct(spec.entity, more=more)

    def _array(self, spec: FieldSpec, *, flexible: bool, more: bool) -> None:
        self._count("int32" if not flexible else None)
        self._line("if n > end - p:" if spec.nullable else "if not 0 <= n <= end - p:")
        self._line("    refuse(n, end - p)")
        if not more and not (spec.entity and _holds_array(spec.entity)):
            return
        if spec.kafka_type in _SIZES:
            self._line("if n > 0:")
            self._line(f"    p += n * {_SIZES[spec.kafka_type]}")
            return
        self._line("for _ in range(n):")
        if spec.entity is not None:
            self._nested(spec.entity, more=True)
        else:
            self._indented(lambda: self._plain(spec.kafka_type or "", flexible=flexible))

    def _plain(self, kafka_type: str, *, flexible: bool) -> None:
        if kafka_type in _SIZES:
            self._skip_bytes += _SIZES[kafka_type]
            return
        self._count(None if flexible else "int16" if kafka_type == "string" else "int32")
        self._line("if n > 0:")
        self._line("    p += n")

    def _count(self, legacy_type: str | None) -> None:
        """``n``: the length or count at ``p``, below zero for null."""
        if legacy_type is None:
            self._line("n = b[p] - 1")
            self._line("p += 1")
            self._line("if n > 126:")
            self._line("    n, p = uvarint(b, p - 1)")
            self._line("    n -= 1")
        elif legacy_type == "int16":
            self._line("n = (b[p] ^ 128) * 256 + b[p + 1] - 32768")
            self._line("p += 2")
        else:
            self._line("n = int32(b, p)[0]")
            self._line("p += 4")

    def _tagged_fields(self, specs: list[FieldSpec]) -> None:
        known = {spec.tag: _compile(_tagged_value(spec)) for spec in specs}
        name = f"tagged_{len(self.scope)}"
        self.scope[name] = lambda frame, position, end: _walk_tagged(known, frame, position, end)
        self._line("p += 1")
        self._line("if b[p - 1]:")
        self._line(f"    p = {name}(b, p - 1, end)")

    def _nested(self, entity: type[Any], *, more: bool) -> None:
        self._indented(lambda: self.struct(entity, more=more))

    def _indented(self, write: Callable[[], object]) -> None:
        before = len(self.lines)
        self._indent += "    "
        write()
        self.flush()
        if len(self.lines) == before:
            self._line("pass")
        self._indent = self._indent[:-4]

    def flush(self) -> None:
        """One step over the fields of fixed width gathered so far."""
        if self._skip_bytes:
            self.lines.append(f"{self._indent}p += {self._skip_bytes}")
            self._skip_bytes = 0

    def _line(self, line: str) -> None:
        self.flush()
        self.lines.append(self._indent + line)


def _tagged_value(spec: FieldSpec) -> _Source:
    source = _Source()
    source.field(spec, flexible=True, more=True)
    source.flush()
    return source


def _walk_tagged(known: dict[int | None, _Walk], frame: bytes, position: int, end: int) -> int:
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        stop = position + size
        walk = known.get(tag)
        if walk is not None and walk(frame, position, end) != stop:
            raise MalformedMessage(f"tagged field {tag} is not of the {size} bytes it says")
        position = stop
    return position
