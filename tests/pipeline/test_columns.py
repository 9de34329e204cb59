"""Fields of many rows read in step: what is read of each row is what is read of it alone, and a row that does not fit is out."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipeline.columns import Column, Cursor, binaries, strings
from odradek.protocol.coordinator_records.fields import MalformedMessage, read_int16, read_int32, read_int64, take
from odradek.protocol.varint import read_uvarint
from tests.cases import each_case


def one_int8(data, position):
    raw, position = take(data, position, 1)
    return int.from_bytes(raw, "big", signed=True), position


def one_uvarint(data, position):
    value, end = read_uvarint(data, position)
    if end - position > 2:
        raise MalformedMessage("not read by columns")
    return value, end


def one_nullable_string(data, position):
    size, position = read_int16(data, position)
    return (None, position) if size == -1 else take(data, position, size)


def one_string(data, position):
    return take(data, *read_int16(data, position)[::-1])


def one_compact_string(data, position):
    size, position = read_uvarint(data, position)
    if size > 0x3FFF:
        raise MalformedMessage("not read by columns")
    return take(data, position, size - 1)


def one_bytes(data, position):
    return take(data, *read_int32(data, position)[::-1])


ONE = {
    "read_int8": one_int8,
    "read_int16": read_int16,
    "read_int32": read_int32,
    "read_int64": read_int64,
    "read_uvarint": one_uvarint,
    "read_nullable_string": one_nullable_string,
    "read_string": one_string,
    "read_compact_string": one_compact_string,
    "read_bytes": one_bytes,
}


def alone(data, names):
    """What is read of a row, and whether to its end; None where it does not fit."""
    found, position = [], 0
    try:
        for name in names:
            value, position = ONE[name](data, position)
            found.append(value)
    except MalformedMessage:
        return None
    return found, position == len(data)


def cursor_of(*rows):
    return Column.of(pa.array(rows, pa.binary())).cursor(np.arange(len(rows)))


def in_step(rows, names):
    cursor = cursor_of(*rows)
    fields = [getattr(cursor, name)() for name in names]
    is_whole = cursor.is_whole()
    return [
        ([value_of(cursor.data, field[row]) for field in fields], bool(is_whole[row])) if cursor.fits[row] else None
        for row in range(len(rows))
    ]


def value_of(data, field):
    if field.ndim == 0:
        return int(field)
    start, size = field
    return None if size < 0 else data[start : start + size].tobytes()


# Bytes that are small numbers are sizes of what follows.
rows = st.lists(
    st.lists(st.one_of(st.integers(0, 3), st.sampled_from([0x7F, 0x80, 0xFF]), st.integers(0, 255)), max_size=24).map(bytes)
)


@given(rows, st.lists(st.sampled_from(sorted(ONE)), max_size=5))
def test_what_is_read_in_step_is_what_is_read_alone(some, names):
    assert in_step(some, names) == [alone(data, names) for data in some]


def test_a_uvarint_of_two_bytes_is_read_and_one_of_three_is_out():
    assert in_step([b"\xff\x7f", b"\x80\x80\x01"], ["read_uvarint"]) == [([0x3FFF], True), None]


@each_case("name", sorted(ONE))
def test_a_field_does_not_reach_into_the_next_row(name):
    [first, _] = in_step([b"", b"\0\0\0\0\0\0\0\0"], [name])
    assert first is None


def test_only_a_size_of_minus_one_is_a_null_string():
    assert in_step([b"\xff\xff", b"\xff\xfe", b"\0\0"], ["read_nullable_string"]) == [([None], True), None, ([b""], True)]


def test_a_row_that_is_out_stays_out():
    assert in_step([b"\0\1", b"\0\1\0\0\0\2"], ["read_int32", "read_int16"]) == [None, ([0x10000, 2], True)]


def test_elements_are_in_the_order_of_rows_and_then_of_the_array():
    cursor = cursor_of(b"\2ab", b"\0", b"\3cde", b"\1f")
    elements = cursor.read_array(cursor.read_int8(), 1, lambda part: {"byte": part.read_int8()})
    assert elements.rows.tolist() == [0, 0, 2, 2, 2, 3]
    assert bytes(elements.fields["byte"].tolist()) == b"abcdef"
    assert cursor.is_whole().all()


def test_elements_of_kept_rows_have_the_numbers_of_these():
    cursor = cursor_of(b"\2ab", b"\1c", b"\1d")
    elements = cursor.read_array(cursor.read_int8(), 1, lambda part: {"byte": part.read_int8()})
    kept = elements.where(np.array([False, True, True]))
    assert (kept.rows.tolist(), bytes(kept.fields["byte"].tolist())) == ([0, 1], b"cd")


@each_case(("count", "rest", "steps"), [(2**31 - 1, b"", 0), (10, b"\0" * 9, 0), (129, b"\0" * 129, 0), (128, b"\0" * 128, 128)])
def test_an_array_takes_no_more_steps_than_the_longest_that_is_read(count, rest, steps):
    cursor = cursor_of(count.to_bytes(4, "big") + rest)
    read = []

    def read_element(part):
        read.append(len(part.fits))
        return {"byte": part.read_int8()}

    elements = cursor.read_array(cursor.read_int32(), 1, read_element)
    assert sum(read) == len(elements.rows) == steps
    assert len(read) == max(steps, 1)
    assert cursor.fits.tolist() == [steps > 0]


@each_case(
    ("data", "found"),
    [
        (b"\0", (None, None)),
        (b"\1\0\1x", ("x", None)),
        (b"\1\2\2yz", (None, "yz")),
        (b"\2\0\1x\2\2yz", ("x", "yz")),
        (b"\2\2\2yz\0\1x", "out"),  # not in order
        (b"\2\0\1x\0\1y", "out"),  # one twice
        (b"\1\1\1x", "out"),  # not known
        (b"\1\0\2xy", "out"),  # of another size
        (b"\1\0\1", "out"),
        (b"\1", "out"),
    ],
)
def test_tagged_fields_are_read_where_they_are_known_and_in_order(data, found):
    # What lies behind the row is as if it went on.
    cursor = cursor_of(data, b"\0\1x\2\2yz")
    starts = cursor.read_tagged_fields({0: 1, 2: 2})
    if found == "out":
        assert not cursor.fits[0]
        return
    assert cursor.is_whole()[0]
    read = [
        data[starts[tag][0] : starts[tag][0] + size].decode() if starts[tag][0] >= 0 else None for tag, size in ((0, 1), (2, 2))
    ]
    assert tuple(read) == found


def test_the_bytes_at_places_are_copied_out_of_what_is_between_them():
    data = np.frombuffer(b"..one.two..", np.uint8)
    places = np.array([[2, 3], [5, -1], [6, 0], [6, 3]])
    assert binaries(data, places).to_pylist() == [b"one", None, b"", b"two"]


@each_case("raw", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3"])
def test_a_text_that_python_does_not_take_is_refused(raw):
    with pytest.raises(UnicodeDecodeError):
        raw.decode()
    with pytest.raises(pa.ArrowInvalid):
        strings(np.frombuffer(raw, np.uint8), np.array([[0, len(raw)]]))


def test_versions_are_read_of_slices_too_and_of_no_row_that_has_none():
    keys = pa.array([b"\0\7", b"\0\1x", None, b"\0", b"", b"\xff\xfe"], pa.binary())
    assert Column.of(keys.slice(1)).versions().tolist() == [1, -1, -1, -1, -2]


def test_a_cursor_over_no_rows_reads_nothing():
    cursor = Cursor(np.zeros(8, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert len(cursor.read_compact_string()) == len(cursor.read_array(cursor.read_int8(), 1, lambda part: {}).rows) == 0
