"""Batches opened and built by our own code on both sides, and batches that are none."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression import compress
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.record_batch import HEADER, batch_crc, read_header, validate
from odradek.protocol.records import Record, build_batch, read_records
from odradek.protocol.varint import read_varint, write_varint
from tests.cases import each_case

TIMESTAMPS = st.integers(-1, 2**62)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(-1),
        timestamp=TIMESTAMPS,
        key=st.none() | st.binary(max_size=20),
        value=st.none() | st.binary(max_size=80),
        headers=HEADERS,
    ),
    min_size=1,
    max_size=6,
)


def batch_of(payload: bytes, count: int = 1, **fields: int) -> bytes:
    """A batch around ``payload``, whatever it is, with a CRC that fits."""
    header = read_header(build_batch([Record(timestamp=0)]))
    header = header._replace(
        **{"batch_length": 49 + len(payload), "record_count": count, "last_offset_delta": count - 1, **fields}
    )
    batch = bytearray(HEADER.pack(*header) + payload)
    batch[17:21] = batch_crc(batch, 0, len(batch)).to_bytes(4, "big")
    return bytes(batch)


def framed(body: bytes) -> bytes:
    out = bytearray()
    write_varint(out, len(body))
    return bytes(out) + body


@given(records=RECORDS, compression=st.integers(0, 4), base_offset=st.integers(0, 2**60))
def test_what_was_built_is_read(records, compression, base_offset):
    batch = build_batch(records, compression=compression, base_offset=base_offset)

    validate(read_header(batch), batch)
    assert list(read_records(batch)) == [record._replace(offset=base_offset + index) for index, record in enumerate(records)]


@given(compression=st.integers(0, 4), position=st.integers(0, 5))
def test_a_batch_is_read_where_it_lies(compression, position):
    batch = build_batch([Record(0, 5, b"k", b"v")], compression=compression)

    assert list(read_records(memoryview(bytes(position) + batch + b"behind"), position)) == [Record(0, 5, b"k", b"v")]


def test_offsets_that_compaction_left_are_kept():
    records = [Record(12, 1, b"a"), Record(15, 1, b"b"), Record(19, 1, b"c")]

    batch = build_batch(records, base_offset=10)

    assert list(read_records(batch)) == records
    assert read_header(batch).last_offset == 19


@pytest.mark.parametrize("offsets", [(3, 3), (4, 3), (1,)])
def test_offsets_that_do_not_rise_are_refused(offsets):
    with pytest.raises(ValueError, match="offset"):
        build_batch([Record(offset) for offset in offsets], base_offset=2)


def test_an_empty_batch_is_not_built():
    with pytest.raises(ValueError, match="one record"):
        build_batch([])


def test_a_batch_that_compaction_emptied_has_no_records():
    assert list(read_records(batch_of(b"", 0))) == []


@given(records=RECORDS, compression=st.integers(0, 4), data=st.data())
def test_a_mutated_batch_is_read_or_refused_with_a_typed_error(records, compression, data):
    mutated = bytearray(build_batch(records, compression=compression))
    for _ in range(data.draw(st.integers(1, 5))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    del mutated[data.draw(st.integers(0, len(mutated))) :]
    mutated += data.draw(st.binary(max_size=5))
    with contextlib.suppress(MalformedMessage, KafkaError):
        validate(read_header(mutated), mutated)
    with contextlib.suppress(MalformedMessage):
        list(read_records(mutated, limit_bytes=1 << 20))


@given(payload=st.binary(max_size=60), count=st.integers(-1, 10))
def test_random_records_are_read_or_malformed(payload, count):
    with contextlib.suppress(MalformedMessage):
        list(read_records(batch_of(payload, count)))


GOOD_BODY = b"\0\0\0\1\1\0"  # attributes, timestamp delta, offset delta, null key, null value, no headers


def test_the_payload_that_the_broken_ones_vary_is_a_record():
    assert list(read_records(batch_of(framed(GOOD_BODY)))) == [Record(0, 0)]


@each_case(
    "payload",
    [
        framed(GOOD_BODY)[:-1],
        framed(GOOD_BODY) + b"\0",
        framed(GOOD_BODY + b"\0"),
        framed(b"\0\0\0\1\1"),
        framed(b"\0\0\0\x7e\1\0"),
        framed(b"\0\0\0\1\x7e\0"),
        framed(b"\0\0\0\1\1\1"),
        framed(b"\0\0\0\1\1\2\1\1"),
        framed(b"\0\0\0\1\1\xfe\xff\xff\xff\x0f"),
        framed(b"\0\0\0\1\1\2\2\xff\1"),
        framed(b"\0\0\1\1\1\0"),
        framed(b"\0" + b"\xff" * 11 + b"\0\1\1\0"),
        framed(b"\0\0" + b"\xff" * 6 + b"\1\1\0"),
        b"\x0d\0\0\0\1\1\0",
        b"\xff\xff\xff\xff\x0f" + GOOD_BODY,
        b"\xff" * 20,
    ],
    ids=[
        "cut",
        "bytes after the last record",
        "record longer than its fields",
        "record shorter than its fields",
        "key longer than the record",
        "value longer than the record",
        "negative number of headers",
        "header without a key",
        "more headers than bytes",
        "header key is not UTF-8",
        "negative offset delta",
        "timestamp of 77 bits",
        "offset of 42 bits",
        "negative length",
        "length out of all bounds",
        "no end of a varint",
    ],
)
def test_a_broken_record_is_malformed(payload):
    with pytest.raises(MalformedMessage):
        list(read_records(batch_of(payload)))


@each_case("count", [-1, 2, 2**31 - 1, -(2**31)])
def test_a_count_that_the_bytes_do_not_bear_out_is_malformed(count):
    with pytest.raises(MalformedMessage):
        list(read_records(batch_of(framed(GOOD_BODY), count, last_offset_delta=0)))


@each_case(
    "fields",
    [
        {"magic": 1},
        {"magic": 3},
        {"batch_length": 10_000},
        {"base_offset": -1},
        {"base_offset": 2**63 - 1},
        {"base_timestamp": 2**63 - 1, "attributes": 0},
        {"attributes": 5},
    ],
)
def test_a_header_of_no_batch_is_malformed(fields):
    with pytest.raises(MalformedMessage):
        list(read_records(batch_of(framed(b"\0\2\0\1\1\0"), **fields)))


@each_case("compression", [1, 2, 3, 4])
def test_a_bomb_is_malformed(compression):
    bomb = batch_of(compress(compression, framed(b"\0\0\0\1" + framed(bytes(300_000)) + b"\0")), attributes=compression)

    assert len(next(read_records(bomb)).value or b"") == 300_000
    with pytest.raises(MalformedMessage):
        read_records(bomb, limit_bytes=300_000)


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_varints_come_back(value):
    out = bytearray()
    write_varint(out, value)

    assert read_varint(bytes(out), 0, 64) == (value, len(out))


@each_case(
    ("value", "encoded"),
    [(0, b"\0"), (-1, b"\1"), (1, b"\2"), (-64, b"\x7f"), (64, b"\x80\x01"), (2**31 - 1, b"\xfe\xff\xff\xff\x0f")],
)
def test_varints_are_zigzag(value, encoded):
    out = bytearray()
    write_varint(out, value)

    assert out == encoded


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40])
def test_a_varint_beyond_its_bits_is_malformed(value):
    out = bytearray()
    write_varint(out, value)

    with pytest.raises(MalformedMessage):
        read_varint(bytes(out), 0)
