"""Fields of many rows read in step: numpy over the bytes of Arrow's columns, one field of all rows at a time.

A ``Cursor`` stands somewhere in each of its rows and reads what ``protocol.coordinator_records.fields`` reads of one. Nothing is
raised: a row whose bytes are too few, or not as they are asked to be, is out from then on, and the others go on. What is read of
a row that is out means nothing, and is never looked for outside of the column's bytes.

    int8, int16, int32, int64    big-endian, signed
    uvarint                      of two bytes at most
    string, bytes                int16 or int32 size, -1 for a null string, and that many bytes
    compact string               uvarint size + 1, and that many bytes
    array                        its elements, one behind the other; of all rows first those in front, then those behind them
    tagged fields                uvarint count, then for each a tag, a size, and that many bytes

A field of numbers is an int64 a row. One of bytes is their place, two int64 a row: where they begin, and how many, -1 for null.

Left out, and so are the rows that have them: longer uvarints, arrays of more than 128 elements (a step of the loop over elements
costs what a score of them cost when read one by one), tagged fields that are not known or not in order.
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
# A column's bytes are at least these many, so that there is something to read for a row that is out.
_LEAST_BYTES = 8


class Column(NamedTuple):
    """A column's bytes, and where each row's begin and how many they are."""

    data: Bytes
    starts: Integers
    sizes: Integers
    is_null: Mask

    @classmethod
    def of(cls, array: pa.Array) -> "Column":
        """The column, its bytes where they are. A slice is read from where it begins."""
        array = array.cast(pa.binary())
        _, offsets, buffer = array.buffers()
        bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
        data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
        if len(data) < _LEAST_BYTES:
            data = np.concatenate((data, np.zeros(_LEAST_BYTES, np.uint8)))
        return cls(data, bounds[:-1], np.diff(bounds), array.is_null().to_numpy(zero_copy_only=False))

    def cursor(self, rows: Integers) -> "Cursor":
        """At the beginning of these rows, none of which is null."""
        starts = self.starts[rows]
        return Cursor(self.data, starts, starts + self.sizes[rows])

    def versions(self) -> Integers:
        """The int16 that each row begins with; -1 where it is null or shorter."""
        has_one = ~self.is_null & (self.sizes >= 2)
        return np.where(has_one, integers(self.data, np.where(has_one, self.starts, 0), ">i2"), -1)


class Elements(NamedTuple):
    """Elements of arrays: the row that each is of, ascending, and their fields."""

    rows: Integers
    fields: Fields

    def where(self, is_kept: Mask) -> "Elements":
        """Those of the rows that are kept, by the numbers that these have then."""
        kept = np.flatnonzero(is_kept[self.rows])
        numbers = np.cumsum(is_kept) - 1
        return Elements(numbers[self.rows[kept]], {name: field.take(kept, axis=0) for name, field in self.fields.items()})


NO_ELEMENTS = Elements(np.zeros(0, np.int64), {})


class Cursor:
    """Where each of many rows is read next. ``fits`` tells the rows that are not out."""

    __slots__ = ("_at", "_ends", "data", "fits")

    def __init__(self, data: Bytes, starts: Integers, ends: Integers) -> None:
        self.data = data
        self.fits: Mask = np.ones(len(starts), np.bool_)
        self._at = starts
        self._ends = ends

    def require(self, is_so: Mask) -> None:
        """The rows where it is not are out."""
        self.fits &= is_so

    def is_whole(self) -> Mask:
        """Which rows have been as asked for, and have been read to their ends."""
        is_at_end: Mask = self._at == self._ends
        return self.fits & is_at_end

    def read_int8(self) -> Integers:
        """One byte, signed."""
        return self._read_integer(">i1")

    def read_uint16(self) -> Integers:
        """Two bytes."""
        return self._read_integer(">u2")

    def read_int16(self) -> Integers:
        """Two bytes, signed."""
        return self._read_integer(">i2")

    def read_int32(self) -> Integers:
        """Four bytes, signed."""
        return self._read_integer(">i4")

    def read_int64(self) -> Integers:
        """Eight bytes, signed."""
        return self._read_integer(">i8")

    def read_uvarint(self) -> Integers:
        """Seven bits a byte, the least significant first."""
        low = self._read_integer(">u1")
        is_long = low > 0x7F
        if not is_long.any():
            return low
        high = np.where(is_long, self._peek(), 0)
        self.skip(is_long.astype(np.int64))
        self.require(high <= 0x7F)
        return (low & 0x7F) | (high << 7)

    def read_nullable_string(self) -> Integers:
        """Places."""
        sizes = self.read_int16()
        self.require(sizes >= -1)
        return self._read_place(sizes)

    def read_string(self) -> Integers:
        """Places, none null."""
        return self._read_required(self.read_int16())

    def read_compact_string(self) -> Integers:
        """Places, none null."""
        return self._read_required(self.read_uvarint() - 1)

    def read_nullable_compact_string(self) -> Integers:
        """Places."""
        return self._read_place(self.read_uvarint() - 1)

    def read_bytes(self) -> Integers:
        """Places, none null."""
        return self._read_required(self.read_int32())

    def skip(self, sizes: Integers | int) -> Integers:
        """Where so many bytes, not less than none, of each row begin. The next field is behind them."""
        starts = self._at
        ends = starts + sizes
        has_them = ends <= self._ends
        if has_them.all():
            self._at = ends
            return starts
        self.fits &= has_them
        # Column.of has made sure that from 0 on any integer can be read.
        self._at = np.where(has_them, ends, 0)
        return np.where(has_them, starts, 0)

    def read_array(self, counts: Integers, least_bytes: int, read: Callable[["Cursor"], Fields]) -> Elements:
        """The elements of an array of ``counts`` in each row, that ``read`` reads one in each row of, ``least_bytes`` each."""
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
        """For each place in arrays the rows that have an element there, and a cursor at them, to read them with meanwhile.

        Once at least, if of no rows.
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
        """By tag, ascending in ``sizes``, where in each row its value of that size begins, -1 where it is not there."""
        found = {}
        for tag, having, inside in self.tagged_fields(sizes):
            starts = found[tag] = np.full(len(self.fits), -1)
            starts[having] = inside.skip(sizes[tag])
        return found

    def tagged_fields(self, tags: Iterable[int]) -> Iterator[tuple[int, Integers, "Cursor"]]:
        """For each of these tags, ascending, the rows that have it, and a cursor in its value, to read all of that meanwhile."""
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
        """The next byte; of a row that is at its end, any."""
        return integers(self.data, np.minimum(self._at, len(self.data) - 1), ">u1")

    def _part(self, rows: Integers) -> "Cursor":
        """A cursor where these rows, none of them out, are read next."""
        return Cursor(self.data, self._at[rows], self._ends[rows])

    def _inside(self, sizes: Integers) -> "Cursor":
        """A cursor in the next so many bytes of each row; this one is behind them."""
        starts = self.skip(sizes)
        # A row that has not as many is out there too, and has none.
        part = Cursor(self.data, starts, np.where(self.fits, starts + sizes, 0))
        part.fits = self.fits.copy()
        return part

    def _join(self, rows: Integers, part: "Cursor") -> None:
        """These rows have been read by ``part``."""
        self._at[rows] = part._at  # noqa: SLF001  # one of its own
        self.fits[rows] = part.fits


def integers(data: Bytes, at: Integers, kind: str) -> Integers:
    """The integers at these places, of a numpy ``kind``."""
    dtype = np.dtype(kind)
    # One that begins at each byte.
    everywhere: NDArray[Any] = np.ndarray((len(data) - dtype.itemsize + 1,), dtype, data, strides=(1,))
    return everywhere[at].astype(np.int64)


def binaries(data: Bytes, places: Integers) -> pa.Array:
    """The bytes at these places, which ascend and do not overlap."""
    count = len(places)
    if not count:
        return pa.array([], pa.binary())
    starts, sizes = places[:, 0], places[:, 1]
    # They and what is between them are an array over the bytes as they lie; every other element is copied out of it.
    bounds = np.stack((starts, starts + np.maximum(sizes, 0)), axis=1).astype(np.int32).reshape(-1)
    with_gaps = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    return with_gaps.take(pa.array(np.arange(0, 2 * count, 2), mask=sizes < 0))


def each_once(data: Bytes, places: Integers, decode: Callable[[bytes], Any], decoded: pa.DataType) -> pa.Array:
    """What ``decode`` makes of the bytes at these places, made once for all that are the same; null where they are."""
    found = binaries(data, places).dictionary_encode()
    return pa.array([decode(each) for each in found.dictionary.to_pylist()], decoded).take(found.indices)


def places_among(is_there: Mask) -> pa.Array:
    """To ``take`` the elements of a shorter array by: one for each row that is there, in order, and null for the others."""
    return pa.array(np.cumsum(is_there) - 1, mask=~is_there)


def strings(data: Bytes, places: Integers) -> pa.Array:
    """The same as text. Raises ArrowInvalid where one is not UTF-8."""
    return binaries(data, places).cast(pa.string())


def arrow_columns(data: Bytes, fields: Fields) -> dict[str, pa.Array]:
    """Numbers and texts. Raises ArrowInvalid where one is not UTF-8."""
    return {name: strings(data, field) if field.ndim > 1 else pa.array(field) for name, field in fields.items()}


def lists(elements: Elements, count: int, values: pa.Array) -> pa.Array:
    """A list for each of ``count`` rows, of the ``values`` of its elements."""
    bounds = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(elements.rows, minlength=count), out=bounds[1:])
    return pa.ListArray.from_arrays(pa.array(bounds), values)
