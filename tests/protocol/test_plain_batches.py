"""Batches of coordinator records: what the fast path writes, everybody reads, and what anybody writes, it reads."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.plain_batches import build_batch, read_batch
from odradek.protocol.record_batch import HEADER_SIZE, read_header, validate
from odradek.protocol.records import Record, read_records
from odradek.protocol.records import build_batch as build_any_batch
from tests.cases import each_case

NOW_MS = 1_700_000_000_000
SIZES = st.sampled_from([0, 1, 63, 64, 1023, 1024, 1025, 9000]) | st.integers(0, 100)
KEYS = SIZES.map(bytes)
PAIRS = st.lists(st.tuples(KEYS, st.none() | KEYS), min_size=1, max_size=5)


@given(PAIRS, st.integers(0, 4))
def test_a_batch_is_what_the_general_builder_makes(pairs, compression):
    batch = build_batch(pairs, NOW_MS, compression=compression)
    validate(read_header(batch), batch)
    records = [Record(timestamp=NOW_MS, key=key, value=value) for key, value in pairs]
    assert batch == build_any_batch(records, compression=compression)


def test_more_records_than_small_numbers_are_numbered_on():
    pairs = [(b"%d" % number, b"v") for number in range(3000)]
    batch = build_batch(pairs, NOW_MS)
    assert [(offset, key, value) for offset, key, value in read_batch(batch)] == [
        (number, key, value) for number, (key, value) in enumerate(pairs)
    ]


RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(-1),
        timestamp=st.integers(0, 2**40),
        key=st.none() | KEYS,
        value=st.none() | KEYS,
        headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
)


@given(RECORDS, st.integers(0, 4), st.integers(0, 2**50))
def test_any_batch_is_read_as_the_general_reader_reads_it(records, compression, base_offset):
    batch = b"in front" + build_any_batch(records, compression=compression, base_offset=base_offset)
    expected = [(record.offset, record.key, record.value) for record in read_records(batch, 8)]
    assert list(read_batch(batch, 8)) == expected


def test_offsets_that_compaction_took_are_not_given_to_others():
    batch = build_any_batch([Record(offset=10, key=b"a"), Record(offset=14, key=b"b")], base_offset=10)
    assert [offset for offset, _, _ in read_batch(batch)] == [10, 14]


@each_case("position", range(HEADER_SIZE, HEADER_SIZE + 12))
@each_case("byte", [0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF])
def test_a_byte_out_of_place_reads_as_something_or_is_malformed(position, byte):
    batch = bytearray(build_batch([(b"key", b"value"), (b"k", None)], NOW_MS))
    batch[position] = byte
    with suppress(MalformedMessage):
        list(read_batch(batch))


def test_a_record_that_claims_more_than_there_is_is_malformed():
    batch = bytearray(build_batch([(b"key", b"value")], NOW_MS))
    batch[HEADER_SIZE + 4] = 0x7E  # the key's length
    with pytest.raises(MalformedMessage):
        list(read_batch(batch))


def test_a_count_that_is_not_that_of_the_records_is_malformed():
    for count in (0, 2, -1):
        batch = bytearray(build_batch([(b"key", b"value")], NOW_MS))
        batch[HEADER_SIZE - 4 : HEADER_SIZE] = count.to_bytes(4, "big", signed=True)
        with pytest.raises(MalformedMessage):
            list(read_batch(batch))
