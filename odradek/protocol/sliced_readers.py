"""Decoding a large request in slices: the functions of ``readers`` as generators, which can be left between two items.

A struct that holds arrays becomes a generator ``read(b, p, end, budget)``. It yields None after each block of items, and returns
what the function of ``readers`` does. A struct without arrays stays a function. All arrays of a request take their items from
one ``ItemBudget`` before any of them is made. Strings are limited as in Kafka, where no length exceeds an int16.
"""

import struct
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.readers import Read, ReaderCompiler, indented
from odradek.protocol.schemas import FieldSpec, Layout
from odradek.protocol.writers import FIXED_WIDTHS

# Each is read in about a millisecond.
BLOCK: Final = 256
_LONGEST_STRING: Final = 32_767

# What makes a generator of a function that may have no other yield.
NEVER_YIELD: Final = ("if False:", "    yield")

ReadSliced = Callable[[bytes, int, "ItemBudget"], Generator[None, Any, tuple[Any, int]]]


class ItemBudget:
    """How many items the arrays of one request may still have, at all depths together."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def take(self, count: int) -> None:
        """An array has ``count`` items. Raises MalformedMessage if that is more than are left."""
        self.left -= count
        if self.left < 0:
            raise MalformedMessage(f"its arrays have more than {self.limit} items")


def compile_sliced_reader(layout: Layout, canonical: Mapping[str, type[Any]]) -> ReadSliced:
    """``read(frame, position, budget)``: a generator that returns the canonical object, and its end. Raises MalformedMessage."""
    read_struct: Any = _SlicedCompiler(layout, canonical, views=False).compile()
    is_sliced = has_arrays(layout)

    def read(frame: bytes, position: int, budget: ItemBudget) -> Generator[None, Any, tuple[Any, int]]:
        try:
            if not is_sliced:
                return read_struct(frame, position, len(frame))  # type: ignore[no-any-return]
            return (yield from read_struct(frame, position, len(frame), budget))  # type: ignore[no-any-return]
        except (IndexError, struct.error):
            raise MalformedMessage("it ends before its fields do") from None
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"a string that is not UTF-8: {error}") from None

    return read


def has_arrays(layout: Layout) -> bool:
    """Whether a struct, or one within it, has an array among its untagged fields."""
    return any(
        spec.is_array or (spec.layout is not None and has_arrays(spec.layout)) for spec in layout.fields if spec.tag is None
    )


def _refuse_string(name: str, length: int) -> None:
    raise MalformedMessage(f"{name}: a string of {length} bytes: allowed are {_LONGEST_STRING}")


class _SlicedCompiler(ReaderCompiler):
    def compile(self) -> Read:
        self._scope["refuse_string"] = _refuse_string
        self._body()
        if not has_arrays(self._layout):
            return self._function(self._lines)
        return self._function([*NEVER_YIELD, *self._lines], "b, p, end, budget")

    def _struct(self, layout: Layout, to: str) -> list[str]:
        read = self._constant("read", _SlicedCompiler(layout, self._canonical, views=False).compile())
        return [f"{to}, p = {f'yield from {read}(b, p, end, budget)' if has_arrays(layout) else f'{read}(b, p, end)'}"]

    def _string_or_bytes(self, spec: FieldSpec, to: str, *, nullable: bool) -> list[str]:
        lines = super()._string_or_bytes(spec, to, nullable=nullable)
        if spec.kafka_type != "string" or not self._flexible:
            return lines
        place = lines.index("if n < 0:")
        return [*lines[:place], f"if n > {_LONGEST_STRING}:", f"    refuse_string({spec.name!r}, n)", *lines[place:]]

    def _items(self, spec: FieldSpec, to: str) -> list[str]:
        lines = ["if n > end - p:", f"    refuse_count({spec.name!r}, n, end - p)", "budget.take(n)"]
        if spec.kafka_type in FIXED_WIDTHS:
            # None is made of more than 16 bytes, and all by few calls.
            return [*lines, *super()._items(spec, to)]
        item = (
            self._struct(spec.layout, "item") if spec.layout is not None else self._string_or_bytes(spec, "item", nullable=False)
        )
        # ``n`` is used for strings' lengths as well.
        lines += ["items = []", f"for left in range(n, 0, -{BLOCK}):", f"    for _ in range(min(left, {BLOCK})):"]
        lines += indented(indented([*item, "items.append(item)"]))
        return [*lines, "    yield", f"{to} = tuple(items)"]

    def value_reader(self, spec: FieldSpec) -> Read:
        # A tagged field is small: no request that is served has an array in one.
        return ReaderCompiler(self._layout, self._canonical, views=False).value_reader(spec)
