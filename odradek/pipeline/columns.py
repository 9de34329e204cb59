"""A decoder of many rows in step: numpy over the bytes of Arrow's columns, one field of all rows at a time.

A ``Cursor`` has one position in each row. It reads the types that ``protocol.coordinator_records.fields`` reads from one
record. It raises nothing. If a row is too short or malformed, the cursor drops the row and goes on with the others. A dropped
row still yields values. They mean nothing, and reading them stays within the column's bytes.

    int8, int16, int32, int64    big-endian, signed
    uvarint                      of two bytes at most
    string, bytes                int16 or int32 size, -1 for a null string, and that many bytes
    compact string               uvarint size + 1, and that many bytes
    array                        its elements in order; read as the first element of all rows, then the second of all, ...
    tagged fields                uvarint count, then for each a tag, a size, and that many bytes

A numeric field is an int64 for each row. A bytes field is a place for each row, two int64: its start, and its size, -1 for
null.

Left out: longer uvarints, arrays of more than 128 elements, tagged fields that are unknown or out of order. Rows with any of
these are dropped. (One step of the loop over elements costs as much as reading twenty elements one by one, hence the limit.)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Fields: TypeAlias = dict[str, Integers]

_LONGEST_ARRAY = 128
# A column has at least this many bytes, so that reading a dropped row stays within the column.
_LEAST_BYTES = 8


class Column(NamedTuple):
    """A column's bytes, with the start, the size and the nullness of each row's value."""

    data: Bytes
    starts: Integers
    sizes: Integers
    is_null: Mask

    @classmethod
    def of(cls, array: pa.Array) -> "Column":
        """Return the column without a copy of its bytes. A sliced array is read from the start of its slice."""
        array = array.cast(pa.binary())
        _, offsets, buffer = array.buffers()
        bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
        data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
        if len(data) < _LEAST_BYTES:
            data = np.concatenate((data, np.zeros(_LEAST_BYTES, np.uint8)))
        return cls(data, bounds[:-1], np.diff(bounds), array.is_null().to_numpy(zero_copy_only=False))

    def cursor(self, rows: Integers) -> "Cursor":
        """Return a cursor at the start of these rows, none of which is null."""
        starts = self.starts[rows]
        return Cursor(self.data, starts, starts + self.sizes[rows])

    def versions(self) -> Integers:
        """Return the int16 at the start of each row; -1 if the row is null or shorter."""
        has_one = ~self.is_null & (self.sizes >= 2)
        return np.where(has_one, integers(self.data, np.where(has_one, self.starts, 0), ">i2"), -1)


class Elements(NamedTuple):
    """Elements of arrays: the row number of each element, ascending, and the elements' fields."""

    rows: Integers
    fields: Fields

    def where(self, is_kept: Mask) -> "Elements":
        """Return the elements of the kept rows. Their row numbers count the kept rows only."""
        kept = np.flatnonzero(is_kept[self.rows])
        numbers = np.cumsum(is_kept) - 1
        return Elements(numbers[self.rows[kept]], {name: field.take(kept, axis=0) for name, field in self.fields.items()})


NO_ELEMENTS = Elements(np.zeros(0, np.int64), {})


class Cursor:
    """A position in each of many rows. ``fits`` is False for dropped rows."""

    __slots__ = ("_at", "_ends", "data", "fits")

    def __init__(self, data: Bytes, starts: Integers, ends: Integers) -> None:
        self.data = data
        self.fits: Mask = np.ones(len(starts), np.bool_)
        self._at = starts
        self._ends = ends

    def require(self, is_so: Mask) -> None:
        """Drop the rows for which the condition is False."""
        self.fits &= is_so

    def is_whole(self) -> Mask:
        """Return whether each row is well-formed and has been read to its end."""
        is_at_end: Mask = self._at == self._ends
        return self.fits & is_at_end

    def read_int8(self) -> Integers:
        """Read one signed byte."""
        return self._read_integer(">i1")

    def read_uint16(self) -> Integers:
        """Read two bytes, unsigned."""
        return self._read_integer(">u2")

    def read_int16(self) -> Integers:
        """Read two bytes, signed."""
        return self._read_integer(">i2")

    def read_int32(self) -> Integers:
        """Read four bytes, signed."""
        return self._read_integer(">i4")

    def read_int64(self) -> Integers:
        """Read eight bytes, signed."""
        return self._read_integer(">i8")

    def read_uvarint(self) -> Integers:
        """Read seven bits in each byte, the least significant first; two bytes at most."""
        low = self._read_integer(">u1")
        is_long = low > 0x7F
        if not is_long.any():
            return low
        high = np.where(is_long, self._peek(), 0)
        self.skip(is_long.astype(np.int64))
        self.require(high <= 0x7F)
        return (low & 0x7F) | (high << 7)

    def read_nullable_string(self) -> Integers:
        """Read places; size -1 for null."""
        sizes = self.read_int16()
        self.require(sizes >= -1)
        return self._read_place(sizes)

    def read_string(self) -> Integers:
        """Read places. A row with a null is dropped."""
        return self._read_required(self.read_int16())

    def read_compact_string(self) -> Integers:
        """Read places. A row with a null is dropped."""
        return self._read_required(self.read_uvarint() - 1)

    def read_nullable_compact_string(self) -> Integers:
        """Read places; size -1 for null."""
        return self._read_place(self.read_uvarint() - 1)

    def read_bytes(self) -> Integers:
        """Read places. A row with a null is dropped."""
        return self._read_required(self.read_int32())

    def skip(self, sizes: Integers | int) -> Integers:
        """Advance each row by ``sizes`` bytes (0 or more), and return the starts of the skipped bytes."""
        starts = self._at
        ends = starts + sizes
        has_them = ends <= self._ends
        if has_them.all():
            self._at = ends
            return starts
        self.fits &= has_them
        # Column.of makes sure that an integer of any kind can be read at 0.
        self._at = np.where(has_them, ends, 0)
        return np.where(has_them, starts, 0)

    def read_array(self, counts: Integers, least_bytes: int, read: Callable[["Cursor"], Fields]) -> Elements:
        """Read the elements of an array with ``counts`` elements in each row.

        ``read`` is called with a cursor over several rows, and reads one element of each. An element has ``least_bytes`` or
        more.
        """
        rows: list[Integers] = []
        found: list[Fields] = []
        for having, part in self.elements(counts, least_bytes):
            rows.append(having)
            found.append(read(part))
        flat = np.concatenate(rows)
        order = np.argsort(flat, kind="stable")
        together = {name: np.concatenate([fields[name] for fields in found]) for name in found[0]}
        return Elements(flat[order], {name: field.take(order, axis=0) for name, field in together.items()})

    def elements(self, counts: Integers, least_bytes: int) -> Iterator[tuple[Integers, "Cursor"]]:
        """Yield, for each index into the arrays, the rows with an element at it, and a cursor at these elements.

        The caller reads the elements with the cursor before it takes the next index. At least one step is yielded, even
        without rows.
        """
        self.require((counts >= 0) & (counts <= _LONGEST_ARRAY) & (counts * least_bytes <= self._ends - self._at))
        counts = np.where(self.fits, counts, 0)
        for place in range(max(counts.max(initial=0), 1)):
            having = np.flatnonzero(self.fits & (counts > place))
            if place and not len(having):
                break
            part = self._part(having)
            yield having, part
            self._join(having, part)

    def read_tagged_fields(self, sizes: Mapping[int, int]) -> dict[int, Integers]:
        """Return, by tag, the start of its value in each row, -1 if absent. ``sizes`` has the value sizes by ascending tag."""
        found = {}
        for tag, having, inside in self.tagged_fields(sizes):
            starts = found[tag] = np.full(len(self.fits), -1)
            starts[having] = inside.skip(sizes[tag])
        return found

    def tagged_fields(self, tags: Iterable[int]) -> Iterator[tuple[int, Integers, "Cursor"]]:
        """Yield, for each of these tags in ascending order, the rows that have it, and a cursor in its value.

        The caller reads the whole value with the cursor before it takes the next tag.
        """
        left = self.read_uvarint()
        for tag in tags:
            having = np.flatnonzero(self.fits & (left > 0) & (self._peek() == tag))
            part = self._part(having)
            part.skip(1)
            inside = part._inside(part.read_uvarint())  # noqa: SLF001  # one of its own
            yield tag, having, inside
            part.require(inside.is_whole())
            left[having] -= 1
            self._join(having, part)
        self.require(left == 0)

    def _read_integer(self, kind: str) -> Integers:
        return integers(self.data, self.skip(np.dtype(kind).itemsize), kind)

    def _read_required(self, sizes: Integers) -> Integers:
        self.require(sizes >= 0)
        return self._read_place(sizes)

    def _read_place(self, sizes: Integers) -> Integers:
        return np.stack((self.skip(np.maximum(sizes, 0)), sizes), axis=1)

    def _peek(self) -> Integers:
        """Return the next byte; arbitrary for a row at its end."""
        return integers(self.data, np.minimum(self._at, len(self.data) - 1), ">u1")

    def _part(self, rows: Integers) -> "Cursor":
        """Return a cursor at the present positions of these rows, none of them dropped."""
        return Cursor(self.data, self._at[rows], self._ends[rows])

    def _inside(self, sizes: Integers) -> "Cursor":
        """Return a cursor within the next ``sizes`` bytes of each row, and advance this cursor past them."""
        starts = self.skip(sizes)
        # A row that is too short is dropped in both cursors, and its part is empty.
        part = Cursor(self.data, starts, np.where(self.fits, starts + sizes, 0))
        part.fits = self.fits.copy()
        return part

    def _join(self, rows: Integers, part: "Cursor") -> None:
        """Take over the positions and dropped rows of ``part``."""
        self._at[rows] = part._at  # noqa: SLF001  # one of its own
        self.fits[rows] = part.fits


def integers(data: Bytes, at: Integers, kind: str) -> Integers:
    """Return the integers at these places, of a numpy ``kind``."""
    dtype = np.dtype(kind)
    # A view with one integer starting at each byte.
    everywhere: NDArray[Any] = np.ndarray((len(data) - dtype.itemsize + 1,), dtype, data, strides=(1,))
    return everywhere[at].astype(np.int64)


def binaries(data: Bytes, places: Integers) -> pa.Array:
    """Return the bytes at these places, which ascend and do not overlap."""
    count = len(places)
    if not count:
        return pa.array([], pa.binary())
    starts, sizes = places[:, 0], places[:, 1]
    # An array over the original bytes alternates between the places and the gaps; the places are copied out of it.
    bounds = np.stack((starts, starts + np.maximum(sizes, 0)), axis=1).astype(np.int32).reshape(-1)
    with_gaps = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    return with_gaps.take(pa.array(np.arange(0, 2 * count, 2), mask=sizes < 0))


def each_once(data: Bytes, places: Integers, decode: Callable[[bytes], Any], decoded: pa.DataType) -> pa.Array:
    """Return ``decode`` of the bytes at these places, called once for equal bytes; null for a null place."""
    found = binaries(data, places).dictionary_encode()
    return pa.array([decode(each) for each in found.dictionary.to_pylist()], decoded).take(found.indices)


def places_among(is_there: Mask) -> pa.Array:
    """Return indices for ``take`` from an array of the present rows only: ascending, and null for an absent row."""
    return pa.array(np.cumsum(is_there) - 1, mask=~is_there)


def strings(data: Bytes, places: Integers) -> pa.Array:
    """Return the bytes at these places as text. Raises ArrowInvalid if one is not UTF-8."""
    return binaries(data, places).cast(pa.string())


def arrow_columns(data: Bytes, fields: Fields) -> dict[str, pa.Array]:
    """Return fields as Arrow's numbers and texts. Raises ArrowInvalid if one is not UTF-8."""
    return {name: strings(data, field) if field.ndim > 1 else pa.array(field) for name, field in fields.items()}


def lists(elements: Elements, count: int, values: pa.Array) -> pa.Array:
    """Return a list for each of ``count`` rows, made of the ``values`` of its elements."""
    bounds = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(elements.rows, minlength=count), out=bounds[1:])
    return pa.ListArray.from_arrays(pa.array(bounds), values)
