"""Messages of formats v0 and v1: what they hold, by whichever codec they are wrapped, and that damage is told."""

import random
from contextlib import suppress
from itertools import product

import pytest
from kafka.record import MemoryRecords

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.legacy_records import read_legacy_records
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import LOG_APPEND_TIME, ensure_intact, iter_batches, read_header, validate
from odradek.protocol.records import Record, build_batch, read_records
from tests.cases import each_case
from tests.legacy_messages import CODECS, Legacy, message, wrapper

RECORDS = [
    Legacy(40, 1_000, b"k", b"v"),
    Legacy(41, 1_002, None, b"no key"),
    Legacy(42, 1_001, b"tombstone", None),
    Legacy(45, -1, None, None),
    Legacy(46, 1_000, b"", bytes(70_000)),
]


def told(records, magic):
    return [Record(record.offset, record.timestamp if magic else -1, record.key, record.value) for record in records]


def read(data):
    """Every record, by way of the walk over the headers that all of storage uses."""
    found = []
    for position, header in iter_batches(data):
        ensure_intact(header, data, position)
        found += read_records(data, position)
        assert [(each.offset, each.key, each.value) for each in read_records(data, position)] == list(read_batch(data, position))
    return found


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_read_one_behind_the_other(magic):
    data = b"".join(message(magic, record) for record in RECORDS)

    assert read(data) == told(RECORDS, magic)


@each_case(("magic", "codec"), list(product([0, 1], CODECS)))
def test_a_wrapper_holds_records_of_their_own_offsets_and_timestamps(magic, codec):
    data = wrapper(magic, codec, RECORDS)

    assert read(data) == told(RECORDS, magic)
    header = read_header(data)
    assert (header.last_offset, header.next_offset) == (46, 47)
    assert header.max_timestamp == (1_002 if magic else -1)


def test_a_header_has_no_epoch_and_no_producer_and_is_neither_transactional_nor_control():
    # All bits of the attributes that mean something in a batch of today.
    header = read_header(message(1, RECORDS[0], attributes=0xF0))

    assert (header.partition_leader_epoch, header.producer_id, header.last_sequence) == (-1, -1, -1)
    assert not header.is_control
    assert not header.is_transactional
    assert header.compression == 0


@each_case("codec", CODECS)
def test_log_append_time_is_the_wrappers(codec):
    data = wrapper(1, codec, RECORDS, append_time_ms=9_000)

    assert {record.timestamp for record in read(data)} == {9_000}
    assert read_header(data).timestamp_type == LOG_APPEND_TIME


@pytest.mark.parametrize(("outer", "inner"), [(0, 1), (1, 0)])
def test_messages_in_a_wrapper_may_be_of_the_other_format(outer, inner):
    data = wrapper(outer, "gzip", RECORDS, inner=inner)

    assert read(data) == told(RECORDS, inner)


def test_formats_may_alternate():
    batch = build_batch([Record(timestamp=5, value=b"v2"), Record(timestamp=6, value=b"v2")], base_offset=60)
    data = wrapper(0, "lz4", RECORDS) + message(1, Legacy(50, 7, b"k", b"v1")) + batch + message(0, Legacy(62, -1, None, b"v0"))

    assert [record.offset for record in read(data)] == [40, 41, 42, 45, 46, 50, 60, 61, 62]


def test_a_wrapper_of_offset_0_begins_at_0():
    data = b"\0" * 8 + wrapper(1, "gzip", RECORDS)[8:]

    assert [record.offset for record in read(data)] == [0, 1, 2, 5, 6]


def test_a_message_that_is_cut_at_the_end_of_a_wrapper_is_left_out():
    _, encode = CODECS["gzip"]
    inside = message(1, Legacy(0, 1, None, b"a")) + message(1, Legacy(1, 2, None, b"b"))
    data = message(1, Legacy(10, 2, None, encode(inside[:-1])), attributes=1)

    assert [(record.offset, record.value) for record in read(data)] == [(10, b"a")]


@each_case(("magic", "codec"), list(product([0, 1], CODECS)))
def test_kafka_python_reads_the_same(magic, codec):
    data = wrapper(magic, codec, RECORDS)

    peers = [record for batch in iter(MemoryRecords(data).next_batch, None) for record in batch]

    assert [(each.offset, each.key, each.value) for each in peers] == [(each.offset, each.key, each.value) for each in read(data)]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_flipped_bit_is_corruption(magic):
    data = message(magic, RECORDS[0])
    for position in range(12, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        with pytest.raises((KafkaError, MalformedMessage)):
            ensure_intact(read_header(damaged), damaged)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_producer_may_not_send_one(magic):
    data = message(magic, RECORDS[0], offset=0)
    with pytest.raises(KafkaError) as refused:
        validate(read_header(data), data)
    assert refused.value.code is ErrorCode.INVALID_RECORD


@each_case(
    "data",
    [
        message(1, Legacy(3, 1, None, None), attributes=1),
        message(1, Legacy(3, 1, None, b""), attributes=3),
        message(0, Legacy(3, 1, None, b"no lz4"), attributes=3),
        message(1, Legacy(3, 1, None, b"\x28\xb5\x2f\xfd"), attributes=4),
        message(1, Legacy(3, 1, None, b"none"), attributes=7),
        message(1, Legacy(3, 1, None, CODECS["gzip"][1](b"")), attributes=1),
        message(1, Legacy(3, 1, None, CODECS["gzip"][1](message(1, Legacy(4, 1, None, b"")))), attributes=1),
        message(1, Legacy(3, 1, None, CODECS["gzip"][1](message(1, Legacy(0, 1, None, b""), attributes=1))), attributes=1),
        message(0, Legacy(3, 1, None, b"v"))[:-1] + b"",
    ],
    ids=["null", "empty", "junk", "zstd", "unknown-codec", "without-messages", "offset-too-low", "wrapper-in-wrapper", "cut"],
)
def test_what_cannot_be_read_is_malformed(data):
    with pytest.raises(MalformedMessage):
        list(read_records(data))


def test_random_damage_is_told_by_a_typed_error_or_read():
    rng = random.Random(35)
    for _ in range(3_000):
        magic = rng.randint(0, 1)
        inside = bytearray(b"".join(message(magic, record, offset=n) for n, record in enumerate(RECORDS[:4])))
        for _ in range(rng.randint(1, 4)):
            inside[rng.randrange(len(inside))] = rng.randrange(256)
        data = message(magic, Legacy(50, 1, None, CODECS["gzip"][1](bytes(inside))), attributes=1)
        with suppress(MalformedMessage):
            list(read_legacy_records(read_header(data), data))
