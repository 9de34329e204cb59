"""Encoding a large response in slices: the functions of ``writers`` as generators, which can be left between two items.

A struct that holds arrays becomes a generator ``write(append, o, room)``. It yields None after each block of items, and appends
the block as one chunk: the small chunks of all items together would take many times the memory of their bytes. What is written
is taken from the ``Room`` that the response has. An item that is in an array twice, as the same object, is written once.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from odradek.protocol.schemas import FieldSpec, Layout
from odradek.protocol.sliced_readers import BLOCK, NEVER_YIELD, has_arrays
from odradek.protocol.writers import FIXED_WIDTHS, Append, Write, WriterCompiler, compile_writer

WriteSliced = Callable[[Append, Any, "Room"], Generator[None, Any, None]]

# Small chunks are joined up to this size.
_RUN_BYTES: Final = 64 * 1024


class ResponseTooLarge(Exception):
    """The response would have more bytes than it may."""


class Room:
    """How many bytes a response may still have."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def take(self, count: int) -> None:
        """``count`` bytes more. Raises ResponseTooLarge."""
        self.left -= count
        if self.left < 0:
            raise ResponseTooLarge(f"a response of more than {self.limit} bytes")


def _in_runs(chunks: list[bytes]) -> list[bytes]:
    """The same bytes in fewer chunks: the small ones joined."""
    if len(chunks) < 2:
        return chunks
    found = []
    first = size = 0
    for place, chunk in enumerate(chunks, 1):
        size += len(chunk)
        if size >= _RUN_BYTES:
            found.append(b"".join(chunks[first:place]))
            first, size = place, 0
    if size:
        found.append(b"".join(chunks[first:]))
    return found


def compile_sliced_writer(layout: Layout, canonical: Mapping[str, type[Any]]) -> WriteSliced:
    """The generator for ``layout``; see ``writers.compile_writer``."""
    if has_arrays(layout):
        return _SlicedCompiler(layout, canonical).compile()  # type: ignore[return-value]
    write_all = compile_writer(layout, canonical)

    def write(append: Append, message: Any, room: Room) -> Generator[None, Any, None]:  # noqa: ARG001  no array, no bytes to speak of
        write_all(append, message)
        yield

    return write


class _SlicedCompiler(WriterCompiler):
    def compile(self) -> Write:
        self._body()
        self._lines = [*NEVER_YIELD, *self._lines]
        return self._function("append, o, room")

    def _items(self, spec: FieldSpec) -> list[str]:
        if spec.layout is None and spec.kafka_type in FIXED_WIDTHS:
            return ["room.take(16 * len(v))", *super()._items(spec)]
        if spec.layout is None:
            item = [line.replace("append", "part.append") for line in super()._items(spec)[1:]]
        elif has_arrays(spec.layout):
            self._scope[f"write_{spec.name}"] = _SlicedCompiler(spec.layout, self._canonical).compile()
            self._scope["in_runs"] = _in_runs
            return [
                "known = {}",
                "for i in v:",
                "    part = known.get(id(i))",
                "    if part is None:",
                "        part, left = [], room.left",
                f"        yield from write_{spec.name}(part.append, i, room)",
                "        part = known[id(i)] = in_runs(part)",
                "        left -= room.left",
                "    else:",
                "        left = 0",
                "    room.take(sum(map(len, part)) - left)",
                "    for chunk in part:",
                "        append(chunk)",
                # An item whose arrays are empty has not yielded.
                "    yield",
            ]
        else:
            self._scope[f"write_{spec.name}"] = compile_writer(spec.layout, self._canonical)
            item = [f"    write_{spec.name}(part.append, i)"]
        lines = [f"for k in range(0, len(items), {BLOCK}):", "    part = []", f"    for i in items[k:k + {BLOCK}]:"]
        lines += [f"    {line}" for line in item]
        lines += ["    chunk = join(part)", "    room.take(len(chunk))", "    append(chunk)", "    yield"]
        # ``v`` is used for strings in between.
        return ["items = v if isinstance(v, (list, tuple)) else tuple(v)", *lines]
