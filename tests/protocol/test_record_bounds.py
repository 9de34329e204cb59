"""The quick look at a produced batch: real batches pass, and a batch that claims what its bytes cannot be does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression import compress
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE
from odradek.protocol.record_walk import HEAD_BYTES, MOST_RECORDS, ensure_bounds
from odradek.protocol.records import Record, build_batch, write_record
from odradek.protocol.varint import write_varint
from tests.cases import each_case

CODECS = range(5)
NO_CODEC, GZIP, SNAPPY, LZ4, ZSTD = CODECS
MOST_COUNT = 2**31 - 1


def record(value=b"value"):
    out = bytearray()
    write_record(out, Record(value=value), 0, 0)
    return bytes(out)


def with_length(length, body=bytes(6)):
    out = bytearray()
    write_varint(out, length)
    return bytes(out) + body


def look(payload, count, codec=NO_CODEC, wrap=bytes):
    """Look at a batch of these records."""
    batch = bytes(HEADER_SIZE) + compress(codec, payload)
    ensure_bounds(wrap(batch), len(batch), count, codec)


def is_refused(*args, **options):
    try:
        look(*args, **options)
    except MalformedMessage:
        return True
    return False


@given(
    st.lists(st.sampled_from([0, 1, 50, 60, 70, 8_000, 9_000, 70_000]), min_size=1, max_size=12),
    st.sampled_from([1, 100]),
    st.sampled_from(CODECS),
    st.sampled_from([bytes, bytearray, memoryview]),
)
def test_a_batch_as_clients_build_it_passes(sizes, times, codec, wrap):
    values = [bytes(size) for size in sizes * times if times == 1 or size < 100] or [b""]
    records = [Record(key=b"k", value=value, headers=(("h", b"v"),)) for value in values]
    batch = build_batch(records, compression=codec)
    ensure_bounds(wrap(batch + b"begin of another"), len(batch), len(records), codec)


IMPOSSIBLE = {
    "one less than said": (record(), 2),
    "many less": (record(), MOST_COUNT),
    "one more": (record() * 2, 1),
    "a byte more": (record() + b"\0", 1),
    "a negative length": (with_length(-5, bytes(8)), 1),
    "a length too small": (with_length(5, bytes(6)), 1),
    "a length too large": (with_length(50), 1),
    "the largest length": (with_length(2**31 - 1), 1),
    "no length": (b"\xff" * 9, 1),
    "a negative length among others": (record() * 20 + with_length(-64, bytes(100)) + record() * 20, 41),
    "a byte behind a large one": (record(bytes(9_000)) + b"\0", 1),
    "one large one less": (record(bytes(9_000)) * 3, 4),
    "some less, behind the look": (record() * (MOST_RECORDS + 4), MOST_RECORDS + 50),
    "some more": (record() * (MOST_RECORDS + 4), MOST_RECORDS - 1),
}


@each_case("codec", CODECS)
@each_case(("payload", "count"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_records_that_their_batch_does_not_have_are_refused(payload, count, codec):
    assert is_refused(payload, count, codec=codec)


@each_case("codec", CODECS[1:])
def test_data_that_is_not_of_its_codec_is_refused(codec):
    whole = compress(codec, record() * 10)
    for junk in (b"", b"junkjunk!", whole[:4] + bytes(30), whole[:-3]):
        batch = bytes(HEADER_SIZE) + junk
        with pytest.raises(MalformedMessage):
            ensure_bounds(batch, len(batch), 1, codec)


@each_case("codec", [NO_CODEC, GZIP, LZ4, ZSTD])
def test_a_record_of_many_bytes_is_followed_to_its_end_as_far_as_it_is_known(codec):
    large = record(bytes(HEAD_BYTES * 2))
    assert not is_refused(large, 1, codec=codec)
    assert is_refused(large + record(), 1, codec=codec) == (codec == NO_CODEC)
    assert is_refused(record() + large, 1, codec=codec)
    assert is_refused(large + b"\0", 2, codec=codec) == (codec == NO_CODEC)


@given(st.binary(max_size=40), st.integers(1, 7), st.sampled_from([bytes, memoryview]))
def test_junk_passes_only_if_its_lengths_happen_to_fill_it(junk, count, wrap):
    at = 0
    for _ in range(count):
        if at >= len(junk):
            at = -1
            break
        size = shift = 0
        for byte in junk[at : at + 5]:
            size |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if byte < 0x80:
                break
        else:
            at = -1
            break
        if size & 1 or size >> 1 < 6:
            at = -1
            break
        at += size >> 1
    assert is_refused(junk, count, wrap=wrap) == (at != len(junk))
