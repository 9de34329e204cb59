"""Encoding: one flat function for each struct and version, compiled from its fields. ``readers`` is the other direction.

A function ``write(append, o)`` takes the fields of a canonical object and appends chunks of bytes. Adjacent fields of fixed width
share one ``struct.pack``; every other field is a few lines written out in place. A test compares the result with kio's output,
byte for byte. Canonical objects are named tuples. If most fields are written, the tuple is unpacked, which takes two thirds of
the time of reading attribute by attribute.

    string, bytes        int16 or int32 length (-1: null), compact: uvarint length + 1 (0: null)
    array                int32 count (-1: null), compact: uvarint count + 1 (0: null)
    tagged fields        uvarint count, then per field uvarint tag, uvarint size, value; defaults are left out
    nullable struct      int8 -1 for null, in a tagged field 0; 1 before an existing one (KIP-893)

A records field may hold anything with a length. The chunk is passed on unchanged, so a slice of a log file can be sent without
being read. A field that the canonical class lacks is written with its default.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from odradek.protocol.messages import OF_FIELDS, FieldSpec, Layout, make_class
from odradek.protocol.varint import SMALL_UVARINTS, uvarint

Append = Callable[[Any], None]
Write = Callable[[Append, Any], None]

# Types of fixed width, and their codes in ``struct``.
FIXED_WIDTHS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
# Types that ``struct`` packs without conversion.
_PLAIN_WIDTHS = FIXED_WIDTHS.keys() - {"uuid"}
_ZERO_UUID = bytes(16)
# If more than this share of an object's fields is written, unpacking the object is faster.
_MOST = 0.65


def compile_writer(layout: Layout, canonical: Mapping[str, type[Any]]) -> Write:
    """Compile the writer for ``layout``. It takes the canonical object of the same name.

    A class that is not in ``canonical`` must have every field under its ``FieldSpec.name``.
    """
    return WriterCompiler(layout, canonical).compile()


def compile_fixed_width_encoder(
    layout: Layout, canonical: Mapping[str, type[Any]], *, tagged_header: bool
) -> Callable[[int, Any], list[bytes]] | None:
    """Compile ``encode(correlation_id, response)``: the frame by one ``pack``; None unless all widths are fixed."""
    fields = _plain_fields(layout, canonical)
    if fields is None:
        return None
    codes, names = fields
    packed = Struct(f">ii{'B' if tagged_header else ''}{codes}")
    header = f"{packed.size - 4}, c, 0" if tagged_header else f"{packed.size - 4}, c"
    values = [f"o.{name}" for name in names] + ["0"] * layout.flexible
    scope: dict[str, Any] = {"pack": packed.pack}
    exec(f"def encode(c, o):\n    return [pack({', '.join([header, *values])})]\n", scope)  # noqa: S102  Kafka's names
    return scope["encode"]  # type: ignore[no-any-return]


def _plain_fields(layout: Layout, canonical: Mapping[str, type[Any]]) -> tuple[str, list[str]] | None:
    """Return format and names of a canonical object's fields; None unless all are untagged and of fixed width."""
    specs = layout.fields
    known = canonical[layout.name]._fields if layout.name in canonical else ()
    if any(spec.is_array or spec.tag is not None for spec in specs):
        return None
    if any(spec.kafka_type not in _PLAIN_WIDTHS or spec.name not in known for spec in specs):
        return None
    codes = "".join(FIXED_WIDTHS[spec.kafka_type or ""] for spec in specs)
    return f"{codes}B" if layout.flexible else codes, [spec.name for spec in specs]


class WriterCompiler:
    """The source and the scope of one struct's function during its construction."""

    def __init__(self, layout: Layout, canonical: Mapping[str, type[Any]]) -> None:
        self._layout = layout
        self._canonical = canonical
        self._canonical_class = canonical.get(layout.name)
        self._known: tuple[str, ...] | None = None if self._canonical_class is None else self._canonical_class._fields
        # The written fields of the canonical object, each in its own variable.
        self._taken: set[str] = set()
        self._flexible = layout.flexible
        self._scope: dict[str, Any] = {
            "UV": SMALL_UVARINTS,
            "uvarint": uvarint,
            "ZERO_UUID": _ZERO_UUID,
            "pack_h": Struct(">h").pack,
            "pack_i": Struct(">i").pack,
            "Struct": Struct,
            "join": b"".join,
        }
        self._lines: list[str] = []
        self._run: list[tuple[str, str]] = []

    def compile(self) -> Write:
        """Compile the function."""
        self._body()
        return self._function("append, o")

    def _function(self, parameters: str) -> Write:
        body = "\n".join(f"    {line}" for line in [*self._prologue(), *self._lines]) or "    pass"
        exec(f"def write({parameters}):\n{body}\n", self._scope)  # noqa: S102  names come from Kafka's definitions
        return self._scope["write"]  # type: ignore[no-any-return]

    def _body(self) -> None:
        specs = self._layout.fields
        for spec in specs:
            if spec.tag is None:
                self._field(spec)
        self._flush_run()
        if self._flexible:
            self._tagged_fields(sorted((s for s in specs if s.tag is not None), key=lambda s: s.tag or 0))

    def _value(self, spec: FieldSpec) -> str:
        if self._known is None:
            return f"o.{spec.name}"
        if spec.name in self._known:
            self._taken.add(spec.name)
            return f"f_{spec.name}"
        return self._constant(f"default_{spec.name}", self._default_object(spec))

    def _prologue(self) -> list[str]:
        """Return lines that read the object's fields."""
        names = self._known or ()
        if len(self._taken) > _MOST * len(names):
            return [f"{', '.join(f'f_{name}' for name in names)}, = o"]
        return [f"f_{name} = o.{name}" for name in names if name in self._taken]

    def _default_object(self, spec: FieldSpec) -> Any:
        if spec.default is not OF_FIELDS:
            return spec.default
        raise TypeError(f"{self._layout.name}.{spec.name}: the canonical class has no value here")

    def _may_be_null(self, spec: FieldSpec) -> bool:
        """Return whether the field's canonical default is null, as newer versions allow."""
        return self._canonical_class is not None and self._canonical_class._field_defaults.get(spec.name, "") is None

    def _constant(self, name: str, value: Any) -> str:
        self._scope[name] = value
        return name

    def _field(self, spec: FieldSpec) -> None:
        value = self._value(spec)
        if spec.kafka_type in FIXED_WIDTHS and not spec.is_array:
            if spec.kafka_type == "uuid":
                value = f"ZERO_UUID if {value} is None else {value}.bytes"
            self._run.append((FIXED_WIDTHS[spec.kafka_type], value))
            return
        self._flush_run()
        self._lines.append(f"v = {value}")
        self._lines += self._variable(spec)

    def _flush_run(self) -> None:
        """Emit one ``pack`` for the fixed-width fields gathered so far."""
        if not self._run:
            return
        name = f"pack_run_{len(self._lines)}"
        self._scope[name] = Struct(">" + "".join(code for code, _ in self._run)).pack
        self._lines.append(f"append({name}({', '.join(value for _, value in self._run)}))")
        self._run = []

    def _variable(self, spec: FieldSpec) -> list[str]:
        """Return lines that write ``v``, a value without a fixed width."""
        if spec.is_array:
            lines = [*self._count("len(v)"), *self._items(spec)]
            return self._or_null(spec, lines, self._null_count())
        if spec.layout is not None:
            self._scope[f"write_{spec.name}"] = compile_writer(spec.layout, self._canonical)
            if not spec.nullable:
                return [f"write_{spec.name}(append, v)"]
            return self._or_null(spec, ["append(b'\\x01')", f"write_{spec.name}(append, v)"], "b'\\xff'")
        if spec.kafka_type == "string":
            # A field that newer versions make nullable is written as the empty string here (JoinGroup's protocol, before 7).
            plain = "v.encode()" if spec.nullable or not self._may_be_null(spec) else "(v or '').encode()"
            lines = [f"v = {plain}", *self._length("pack_h")]
            return self._or_null(spec, lines, "b'\\0'" if self._flexible else "b'\\xff\\xff'")
        lines = self._length("pack_i")
        return self._or_null(spec, lines, self._null_count())

    def _or_null(self, spec: FieldSpec, lines: list[str], null: str) -> list[str]:
        if not spec.nullable:
            return lines
        return ["if v is None:", f"    append({null})", "else:", *(f"    {line}" for line in lines)]

    def _null_count(self) -> str:
        return "b'\\0'" if self._flexible else "b'\\xff\\xff\\xff\\xff'"

    def _count(self, length: str) -> list[str]:
        if not self._flexible:
            return [f"append(pack_i({length}))"]
        return [f"n = {length} + 1", "append(UV[n] if n < 128 else uvarint(n))"]

    def _length(self, legacy_pack: str) -> list[str]:
        if not self._flexible:
            return [f"append({legacy_pack}(len(v)))", "append(v)"]
        return ["n = len(v) + 1", "append(UV[n] if n < 128 else uvarint(n))", "append(v)"]

    def _items(self, spec: FieldSpec) -> list[str]:
        if spec.layout is not None:
            plain = _plain_fields(spec.layout, self._canonical)
            if plain is not None:
                self._scope[f"pack_{spec.name}"] = Struct(f">{plain[0]}").pack
                values = [f"i.{name}" for name in plain[1]] + ["0"] * spec.layout.flexible
                return [f"append(join([pack_{spec.name}({', '.join(values)}) for i in v]))"]
            self._scope[f"write_{spec.name}"] = compile_writer(spec.layout, self._canonical)
            return ["for i in v:", f"    write_{spec.name}(append, i)"]
        if spec.kafka_type == "uuid":
            return ["for i in v:", "    append(ZERO_UUID if i is None else i.bytes)"]
        if spec.kafka_type in FIXED_WIDTHS:
            return [f"append(Struct(f'>{{len(v)}}{FIXED_WIDTHS[spec.kafka_type]}').pack(*v))"]
        inner = ["v = i.encode()", *self._length("pack_h")] if spec.kafka_type == "string" else ["v = i", *self._length("pack_i")]
        return ["for i in v:", *(f"    {line}" for line in inner)]

    def _tagged_fields(self, specs: list[FieldSpec]) -> None:
        specs = [spec for spec in specs if self._known is None or spec.name in self._known]
        if not specs:
            self._lines.append("append(b'\\0')")
            return
        shared = {f"untouched_{spec.tag}": self._untouched(spec) for spec in specs}
        self._scope.update(shared)
        # Tagged fields mostly have their defaults. Then they are the same objects as the class's defaults.
        untouched = " and ".join(f"{self._value(spec)} is untouched_{spec.tag}" for spec in specs)
        self._lines += [f"if {untouched}:", "    append(b'\\0')", "    return", "tagged = []"]
        for spec in specs:
            write = self._scope[f"write_tag_{spec.tag}"] = self._value_writer(spec)
            default = self._encoded_default(spec, write)
            self._scope[f"encoded_default_{spec.tag}"] = default
            self._scope[f"tag_{spec.tag}"] = uvarint(spec.tag or 0)
            self._lines += [
                f"v = {self._value(spec)}",
                f"if v is not untouched_{spec.tag}:",
                "    chunks = []",
                f"    write_tag_{spec.tag}(chunks.append, v)",
                "    encoded = join(chunks)",
                f"    if encoded != encoded_default_{spec.tag}:",
                f"        tagged.append(tag_{spec.tag} + uvarint(len(encoded)) + encoded)",
            ]
        self._lines += ["append(uvarint(len(tagged)))", "if tagged:", "    append(join(tagged))"]

    def _untouched(self, spec: FieldSpec) -> Any:
        """Return the canonical class's default object for this field."""
        # Null is not the default of such a struct (ConsumerGroupMemberMetadataValue).
        if self._canonical_class is None or (spec.default is OF_FIELDS and spec.nullable):
            return spec.default
        return self._canonical_class._field_defaults[spec.name]

    def _value_writer(self, spec: FieldSpec) -> Write:
        """Return a function that writes one tagged field's value. A struct that may be null is preceded by a byte there."""
        inner = WriterCompiler(self._layout, self._canonical)
        if spec.kafka_type in FIXED_WIDTHS and not spec.is_array:
            value = "(ZERO_UUID if o is None else o.bytes)" if spec.kafka_type == "uuid" else "o"
            inner._run.append((FIXED_WIDTHS[spec.kafka_type], value))
            inner._flush_run()
        else:
            lines = inner._variable(spec._replace(nullable=spec.nullable and (spec.is_array or spec.layout is None), tag=None))
            if spec.layout is not None and spec.nullable and not spec.is_array:
                lines = ["append(b'\\1' if v is not None else b'\\0')", "if v is not None:", *(f"    {line}" for line in lines)]
            inner._lines += ["v = o", *lines]
        body = "\n".join(f"    {line}" for line in inner._lines)
        exec(f"def write(append, o):\n{body}\n", inner._scope)  # noqa: S102  names come from Kafka's definitions
        return inner._scope["write"]  # type: ignore[no-any-return]

    def _encoded_default(self, spec: FieldSpec, write: Write) -> bytes | None:
        """Return the default's bytes. None if the default is null: such a field is left out without being encoded."""
        default = _default(spec)
        if default is None:
            return None
        chunks: list[bytes] = []
        write(chunks.append, default)
        return b"".join(chunks)


def _default(spec: FieldSpec) -> Any:
    """Return a field's default. For a struct it is an object with the defaults of its fields."""
    if spec.layout is None or spec.default is not OF_FIELDS:
        return spec.default
    return make_class(spec.layout.name, {each.name: _default(each) for each in spec.layout.fields})()
