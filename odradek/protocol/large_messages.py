"""Codecs of large messages: the results of ``broker_codecs``, but in slices and within limits.

They serve every API except Produce, whose requests are records, and Fetch. The functions of ``readers`` and ``writers`` become
generators, which can pause between two items. A struct with arrays is read by ``read(b, p, end, budget)``. It yields None after
each block of items, and returns the same as the function of ``readers``. It is written by ``write(append, o, room)``, which
yields None after each block and appends it as one chunk: small chunks for all items would take many times the memory of their
bytes. A struct without arrays stays a function.

All arrays of a request take their items from one ``ItemBudget`` before any item is made. Written bytes are taken from the
response's ``Room``. An item that is in an array twice, as the same object, is encoded once.
"""

import struct
from collections.abc import Callable, Generator, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_shape
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import skip_tagged_fields
from odradek.protocol.messages import FieldSpec, Layout
from odradek.protocol.older_requests import request_shape
from odradek.protocol.readers import Read, ReaderCompiler, indented
from odradek.protocol.writers import FIXED_WIDTHS, Append, Write, WriterCompiler, compile_writer

# The number of items in a block, which is read in about a millisecond.
BLOCK: Final = 256

# The first lines of a function that must be a generator, even without another yield.
NEVER_YIELD: Final = ("if False:", "    yield")


class _Limited:
    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit


class ItemBudget(_Limited):
    """The number of items that the arrays of one request may still have, at all depths together."""

    __slots__ = ()

    def take(self, count: int) -> None:
        """Take ``count`` items of an array. Raises MalformedMessage if fewer are left."""
        self.left -= count
        if self.left < 0:
            raise MalformedMessage(f"its arrays have more than {self.limit} items")


def has_arrays(layout: Layout) -> bool:
    """True if a struct, or one within it, has an array among its untagged fields."""
    return any(
        spec.is_array or (spec.layout is not None and has_arrays(spec.layout)) for spec in layout.fields if spec.tag is None
    )


class _SlicedReaderCompiler(ReaderCompiler):
    def compile(self) -> Read:
        self._body()
        if not has_arrays(self._layout):
            return self._function(self._lines)
        return self._function([*NEVER_YIELD, *self._lines], "b, p, end, budget")

    def _struct(self, layout: Layout, to: str) -> list[str]:
        read = self._constant("read", _SlicedReaderCompiler(layout, self._canonical, views=False).compile())
        return [f"{to}, p = {f'yield from {read}(b, p, end, budget)' if has_arrays(layout) else f'{read}(b, p, end)'}"]

    def _items(self, spec: FieldSpec, to: str) -> list[str]:
        lines = ["if n > end - p:", f"    refuse_count({spec.name!r}, n, end - p)", "budget.take(n)"]
        if spec.kafka_type in FIXED_WIDTHS:
            # No item is made from more than 16 bytes, and few calls make all of them.
            return [*lines, *super()._items(spec, to)]
        item = (
            self._struct(spec.layout, "item") if spec.layout is not None else self._string_or_bytes(spec, "item", nullable=False)
        )
        # ``n`` is also used for the lengths of strings.
        lines += ["items = []", f"for left in range(n, 0, -{BLOCK}):", f"    for _ in range(min(left, {BLOCK})):"]
        lines += indented(indented([*item, "items.append(item)"]))
        return [*lines, "    yield", f"{to} = tuple(items)"]

    def value_reader(self, spec: FieldSpec) -> Read:
        # A tagged field is small: no served request has an array in one.
        return ReaderCompiler(self._layout, self._canonical, views=False).value_reader(spec)


WriteSliced = Callable[[Append, Any, "Room"], Generator[None, Any, None]]

# Small chunks are joined up to this size.
_RUN_BYTES: Final = 64 * 1024


class ResponseTooLarge(Exception):
    """The response would exceed its limit of bytes."""


class Room(_Limited):
    """The number of bytes that a response may still have."""

    __slots__ = ()

    def take(self, count: int) -> None:
        """Take ``count`` bytes. Raises ResponseTooLarge."""
        self.left -= count
        if self.left < 0:
            raise ResponseTooLarge(f"the response has more than {self.limit} bytes")


def compile_sliced_writer(layout: Layout, canonical: Mapping[str, type[Any]]) -> WriteSliced:
    """Compile the generator for ``layout``; see ``writers.compile_writer``."""
    if has_arrays(layout):
        return _SlicedWriterCompiler(layout, canonical).compile()  # type: ignore[return-value]
    write_all = compile_writer(layout, canonical)

    def write(append: Append, message: Any, room: Room) -> Generator[None, Any, None]:  # noqa: ARG001  without arrays it is small
        write_all(append, message)
        yield

    return write


class _SlicedWriterCompiler(WriterCompiler):
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
            self._scope[f"write_{spec.name}"] = _SlicedWriterCompiler(spec.layout, self._canonical).compile()
            self._scope["joined"] = _joined
            return [
                "known = {}",
                "for i in v:",
                "    part = known.get(id(i))",
                "    if part is None:",
                "        part, left = [], room.left",
                f"        yield from write_{spec.name}(part.append, i, room)",
                f"        part = known[id(i)] = yield from joined(part, {_RUN_BYTES})",
                "        left -= room.left",
                "    else:",
                "        left = 0",
                "    room.take(sum(map(len, part)) - left)",
                "    for chunk in part:",
                "        append(chunk)",
                # An item with empty arrays has not yielded.
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


# The size of a response's chunk: a millisecond of copying.
_CHUNK_BYTES: Final = 1024 * 1024
_HEADER_V0: Final = Struct(">ii").pack
_HEADER_V1: Final = Struct(">iib").pack

SlicedDecoder = Callable[[bytes, int, int], Generator[None, Any, Any]]
SlicedEncoder = Callable[[int, Any, Room], Generator[None, Any, list[bytes]]]


@cache
def sliced_decoder(api_key: ApiKey, version: int) -> SlicedDecoder:
    """Return ``decode(frame, position, most_items)``, a generator that returns the canonical request.

    ``most_items`` limits the items of all its arrays together. Raises MalformedMessage only.
    """
    layout, canonical, rewrite = request_shape(api_key, version)
    read: Any = _SlicedReaderCompiler(layout, canonical, views=False).compile()
    is_sliced = has_arrays(layout)
    name = f"{api_key.name} v{version}"

    def decode(frame: bytes, position: int, most_items: int) -> Generator[None, Any, Any]:
        try:
            start = skip_tagged_fields(frame, position) if layout.flexible else position
            if is_sliced:
                request, _ = yield from read(frame, start, len(frame), ItemBudget(most_items))
            else:
                request, _ = read(frame, start, len(frame))
        except (IndexError, struct.error):
            raise MalformedMessage(f"{name}: it ends before its fields do") from None
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"{name}: a string is not UTF-8: {error}") from None
        except MalformedMessage as error:
            raise MalformedMessage(f"{name}: {error.reason}") from None
        except Exception as error:  # noqa: BLE001  any exception of a decoder is the bytes' fault
            raise MalformedMessage(f"{name}: {type(error).__name__}: {error}") from None
        return request if rewrite is None else rewrite(request)

    return decode


@cache
def sliced_encoder(api_key: ApiKey, version: int) -> SlicedEncoder:
    """Return ``encode(correlation_id, response, room)``, a generator that returns the frame with its length, as chunks.

    It raises ResponseTooLarge if the response does not fit.
    """
    layout, canonical, rewrite, flexible = response_shape(api_key, version)
    write = compile_sliced_writer(layout, canonical)

    def encode(correlation_id: int, response: Any, room: Room) -> Generator[None, Any, list[bytes]]:
        chunks: list[bytes] = [b""]
        yield from write(chunks.append, response if rewrite is None else rewrite(response), room)
        size = sum(map(len, chunks)) + 4
        chunks[0] = _HEADER_V1(size + 1, correlation_id, 0) if flexible else _HEADER_V0(size, correlation_id)
        return (yield from _joined(chunks, _CHUNK_BYTES))

    return encode


def _joined(chunks: list[bytes], least_bytes: int) -> Generator[None, Any, list[bytes]]:
    """Join ``chunks`` into chunks of ``least_bytes`` or a little more. Empties the joined ones in ``chunks``."""
    found = []
    first = size = 0
    for place, chunk in enumerate(chunks, 1):
        size += len(chunk)
        if size >= least_bytes:
            found.append(b"".join(chunks[first:place]))
            chunks[first:place] = [b""] * (place - first)
            first, size = place, 0
            yield
    if size:
        found.append(b"".join(chunks[first:]))
    return found
