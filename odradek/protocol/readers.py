"""Decoding: one flat function for each struct and version, compiled from its fields. ``writers`` is the other direction.

A function ``read(b, p, end)`` makes a canonical object from the bytes from ``p`` on in ``b``, a frame of ``end`` bytes. Each
field is read into a variable ``f_NAME``. Adjacent fields of fixed width share one ``unpack_from``; every other field is a few
lines written out in place. The last line makes the named tuple. Arrays are tuples. A test compares the results with those of the
library kio, for every version of every API.

    string, bytes        int16 or int32 length (negative: null), compact: uvarint length + 1 (0: null)
    array                int32 count (negative: null), compact: uvarint count + 1 (0: null)
    nullable struct      int8 -1 for null, in a tagged field 0 (KIP-893)
    tagged fields        uvarint count, then per field uvarint tag, uvarint size, value; unknown ones are skipped (KIP-482)

An item takes at least one byte. So a count above the number of bytes left is malformed, and is rejected before memory is
allocated.
"""

import struct
from collections.abc import Callable, Mapping
from struct import Struct, unpack_from
from typing import Any
from uuid import UUID

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import MOST_TAGGED_FIELDS, refuse_tagged_fields
from odradek.protocol.messages import FieldSpec, Layout, make_class
from odradek.protocol.varint import LONGEST_STRING, read_uvarint, refuse_string
from odradek.protocol.writers import FIXED_WIDTHS

# The object, and the position after it.
Read = Callable[[bytes, int, int], tuple[Any, int]]
ReadFrame = Callable[[Any, int], tuple[Any, int]]

_ZERO_UUID = bytes(16)


def compile_reader(
    layout: Layout, canonical: Mapping[str, type[Any]], *, views: bool = False, compiler: "type[ReaderCompiler] | None" = None
) -> ReadFrame:
    """Compile ``read(frame, position)``, which returns the canonical object of ``layout`` and the position after it.

    A struct that is not in ``canonical`` gets a class of its own, with every field under its ``FieldSpec.name``. A field that
    the canonical class lacks is skipped. With ``views`` the frame is a memoryview, and records are views of it; all other
    values are copied. ``read`` raises MalformedMessage.
    """
    read_struct = (compiler or ReaderCompiler)(layout, canonical, views=views).compile()

    def read(frame: Any, position: int) -> tuple[Any, int]:
        try:
            return read_struct(frame, position, len(frame))
        except (IndexError, struct.error):
            raise MalformedMessage("it ends before its fields do") from None
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"a string is not UTF-8: {error}") from None

    return read


def _short() -> None:
    raise MalformedMessage("it ends before its fields do")


def _null(name: str) -> None:
    raise MalformedMessage(f"{name} is null")


def _refuse_count(name: str, count: int, left: int) -> None:
    raise MalformedMessage(f"{name}: an array has {count} items, but {left} bytes are left")


class ReaderCompiler:
    """The source and scope of one class's function while they are built: ``b`` the frame, ``p`` the position, ``end`` its end."""

    # The length above which a compact string is refused.
    longest_string = LONGEST_STRING

    def __init__(self, layout: Layout, canonical: Mapping[str, type[Any]], *, views: bool) -> None:
        self._layout = layout
        self._canonical = canonical
        self._views = views
        self._specs = layout.fields
        self._flexible = layout.flexible
        known = canonical.get(layout.name)
        self._target = known or make_class(layout.name, {spec.name: spec.default for spec in self._specs})
        self._fields: tuple[str, ...] = self._target._fields
        self._scope: dict[str, Any] = {
            "new": tuple.__new__,
            "target": self._target,
            "uvarint": read_uvarint,
            "unpack_from": unpack_from,
            "int16": Struct(">h").unpack_from,
            "int32": Struct(">i").unpack_from,
            "ZERO_UUID": _ZERO_UUID,
            "UUID": UUID,
            "short": _short,
            "too_long": refuse_string,
            "null": _null,
            "refuse_count": _refuse_count,
        }
        self._lines: list[str] = []
        self._run: list[FieldSpec] = []

    def compile(self) -> Read:
        """Compile the function."""
        self._body()
        return self._function(self._lines)

    def _body(self) -> None:
        untagged = [spec for spec in self._specs if spec.tag is None]
        self._defaults({spec.name for spec in untagged})
        for spec in untagged:
            self._field(spec)
        self._flush_run()
        if self._flexible:
            self._tagged_fields([spec for spec in self._specs if spec.tag is not None])
        self._lines.append(f"return {self._result()}, p")

    def _result(self) -> str:
        """Return an expression for the object, from the variables of its fields."""
        return f"new(target, ({''.join(f'f_{name}, ' for name in self._fields)}))"

    def _function(self, lines: list[str], parameters: str = "b, p, end") -> Read:
        body = "\n".join(f"    {line}" for line in lines)
        exec(f"def read({parameters}):\n{body}\n", self._scope)  # noqa: S102  names come from Kafka's definitions
        return self._scope["read"]  # type: ignore[no-any-return]

    def _defaults(self, read: set[str]) -> None:
        """Give fields that this version lacks, or may leave out, the canonical class's defaults."""
        for name in self._fields:
            if name not in read:
                self._scope[f"default_{name}"] = self._target._field_defaults[name]
                self._lines.append(f"f_{name} = default_{name}")

    def _destination(self, spec: FieldSpec) -> str:
        return f"f_{spec.name}" if spec.name in self._fields else "_"

    def _field(self, spec: FieldSpec) -> None:
        if spec.kafka_type in FIXED_WIDTHS and not spec.is_array:
            self._run.append(spec)
            return
        self._flush_run()
        self._lines += self._variable(spec, self._destination(spec))

    def _flush_run(self) -> None:
        """Emit one ``unpack_from`` for the fixed-width fields gathered so far."""
        if self._run:
            self._lines += self._fixed(self._run, [self._destination(spec) for spec in self._run])
            self._run = []

    def _fixed(self, specs: list[FieldSpec], destinations: list[str]) -> list[str]:
        run = Struct(">" + "".join(FIXED_WIDTHS[spec.kafka_type or ""] for spec in specs))
        name = self._constant("run", run.unpack_from)
        lines = [f"{', '.join(destinations)}, = {name}(b, p)", f"p += {run.size}"]
        for spec, destination in zip(specs, destinations, strict=True):
            if spec.kafka_type == "uuid":
                lines.append(f"{destination} = {self._uuid(destination)}")
        return lines

    def _constant(self, name: str, value: Any) -> str:
        name = f"{name}_{len(self._scope)}"
        self._scope[name] = value
        return name

    def _variable(self, spec: FieldSpec, to: str) -> list[str]:
        """Return lines that read a value without a fixed width into ``to``."""
        if spec.is_array:
            return [*self._count(), *_unless_null(spec, to, self._items(spec, to), nullable=spec.nullable)]
        if spec.layout is not None:
            lines = self._struct(spec.layout, to)
            if not spec.nullable:
                return lines
            return ["p += 1", "if b[p - 1] == 255:", f"    {to} = None", "else:", *indented(lines)]
        return self._string_or_bytes(spec, to, nullable=spec.nullable)

    def _struct(self, layout: Layout, to: str) -> list[str]:
        read = self._constant("read", type(self)(layout, self._canonical, views=self._views).compile())
        return [f"{to}, p = {read}(b, p, end)"]

    def _string_or_bytes(self, spec: FieldSpec, to: str, *, nullable: bool) -> list[str]:
        is_string = spec.kafka_type == "string"
        value = "b[p:stop].decode()" if is_string else "b[p:stop]"
        if self._views and spec.kafka_type != "records":
            value = "str(b[p:stop], 'utf-8')" if is_string else "bytes(b[p:stop])"
        lines = ["stop = p + n", "if stop > end:", "    short()", f"{to} = {value}", "p = stop"]
        return [*self._count("int16" if is_string else "int32"), *_unless_null(spec, to, lines, nullable=nullable)]

    def _count(self, legacy: str = "int32") -> list[str]:
        """Return lines that read ``n``, the length or count at ``p``, negative for null."""
        if not self._flexible:
            return [f"n, = {legacy}(b, p)", f"p += {2 if legacy == 'int16' else 4}"]
        lines = ["n = b[p] - 1", "p += 1", "if n > 126:", "    n, p = uvarint(b, p - 1)", "    n -= 1"]
        return [*lines, f"    if n > {self.longest_string}:", "        too_long(n)"] if legacy == "int16" else lines

    def _items(self, spec: FieldSpec, to: str) -> list[str]:
        """Return lines that read ``n`` items into a tuple."""
        lines = ["if n > end - p:", f"    refuse_count({spec.name!r}, n, end - p)"]
        if spec.kafka_type in FIXED_WIDTHS and spec.kafka_type != "uuid":
            code = FIXED_WIDTHS[spec.kafka_type]
            return [*lines, f"{to} = unpack_from(f'>{{n}}{code}', b, p)", f"p += n * {Struct('>' + code).size}"]
        lines += ["items = []", "for _ in range(n):"]
        if spec.layout is not None:
            item = self._struct(spec.layout, "item")
        elif spec.kafka_type == "uuid":
            value = "bytes(b[p:p + 16])" if self._views else "b[p:p + 16]"
            item = [f"item = {value}", "p += 16", "if p > end:", "    short()", f"item = {self._uuid('item')}"]
        else:
            # Only the array itself is nullable, never an item.
            item = self._string_or_bytes(spec, "item", nullable=False)
        return [*lines, *indented([*item, "items.append(item)"]), f"{to} = tuple(items)"]

    def _tagged_fields(self, specs: list[FieldSpec]) -> None:
        known = [spec for spec in specs if spec.name in self._fields]
        readers = {spec.tag or 0: (place, self.value_reader(spec)) for place, spec in enumerate(known)}
        defaults = [self._target._field_defaults[spec.name] for spec in known]
        name = self._constant("tagged", lambda frame, position, end: _read_tagged(readers, defaults, frame, position, end))
        destinations = "".join(f"{self._destination(spec)}, " for spec in known)
        self._lines += ["p += 1", "if b[p - 1]:", f"    p, ({destinations}) = {name}(b, p - 1, end)"]

    def _uuid(self, value: str) -> str:
        """Return an expression for the id of 16 bytes, None for zeros."""
        return f"None if {value} == ZERO_UUID else UUID(bytes={value})"

    def value_reader(self, spec: FieldSpec) -> Read:
        """Return a function for the value of one tagged field. A struct has a presence byte there only if it may be null."""
        if spec.kafka_type in FIXED_WIDTHS and not spec.is_array:
            return self._function([*self._fixed([spec], ["v"]), "return v, p"])
        if spec.layout is not None and not spec.is_array:
            read = type(self)(spec.layout, self._canonical, views=self._views).compile()
            return _unless_absent(read) if spec.nullable else read
        return self._function([*self._variable(spec, "v"), "return v, p"])


def _unless_absent(read: Read) -> Read:
    """Wrap ``read`` for a presence byte: 1 reads the value, 0 or -1 gives None."""
    return lambda frame, position, end: read(frame, position + 1, end) if frame[position] == 1 else (None, position + 1)


def _unless_null(spec: FieldSpec, to: str, lines: list[str], *, nullable: bool) -> list[str]:
    """Return ``lines``, executed only if ``n`` is not null's count."""
    null = f"{to} = None" if nullable else f"null({spec.name!r})"
    return ["if n < 0:", f"    {null}", "else:", *indented(lines)]


def indented(lines: list[str]) -> list[str]:
    """Indent the lines of a block, for use within another block."""
    return [f"    {line}" for line in lines]


def _read_tagged(
    readers: Mapping[int, tuple[int, Read]], defaults: list[Any], frame: bytes, position: int, end: int
) -> tuple[int, list[Any]]:
    """Return the position after the tagged fields, and their values, in the order of ``defaults``."""
    values = defaults.copy()
    count, position = read_uvarint(frame, position)
    if count > MOST_TAGGED_FIELDS:
        refuse_tagged_fields(count)
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        stop = position + size
        if stop > end:
            _short()
        known = readers.get(tag)
        if known is not None:
            place, read = known
            values[place], position = read(frame, position, stop)
            if position != stop:
                raise MalformedMessage(f"tagged field {tag} does not have the stated {size} bytes")
        position = stop
    return position, values
