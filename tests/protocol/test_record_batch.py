"""What can be told of a batch, and done to it, without opening it."""

import random
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import (
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    batch_crc,
    ensure_intact,
    iter_batches,
    read_header,
    stamped_head,
    stamped_head_append_time,
    validate,
)
from odradek.protocol.records import Record, build_batch, read_records
from tests.cases import each_case

RECORDS = [Record(timestamp=1_000 + index, key=b"key", value=b"value %d" % index) for index in range(3)]
BATCH = build_batch(RECORDS, producer_id=7, producer_epoch=2, base_sequence=10)


def forged(batch: bytes = BATCH, **fields: int) -> bytes:
    """``batch`` with header fields changed and the CRC made to fit."""
    header = read_header(batch)._replace(**fields)
    body = bytearray(HEADER.pack(*header) + batch[HEADER_SIZE:])
    body[17:21] = batch_crc(body, 0, len(body)).to_bytes(4, "big")
    return bytes(body)


def refusal(batch: bytes) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        validate(read_header(batch), batch)
    return caught.value.code


def test_a_header_holds_what_the_batch_was_built_with():
    header = read_header(
        build_batch(
            [Record(timestamp=5), Record(timestamp=9), Record(timestamp=7)],
            base_offset=100,
            leader_epoch=3,
            compression=4,
            producer_id=7,
            producer_epoch=2,
            base_sequence=10,
            transactional=True,
            control=True,
            timestamp_type=LOG_APPEND_TIME,
        )
    )

    assert (header.base_offset, header.last_offset, header.next_offset, header.record_count) == (100, 102, 103, 3)
    assert (header.base_timestamp, header.max_timestamp, header.timestamp_type) == (5, 9, LOG_APPEND_TIME)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (7, 2, 10, 12)
    assert (header.partition_leader_epoch, header.magic, header.compression) == (3, 2, 4)
    assert header.has_producer_id
    assert header.is_transactional
    assert header.is_control


def test_a_plain_batch_has_no_producer_and_no_sequence():
    header = read_header(build_batch(RECORDS))

    assert not (header.has_producer_id)
    assert not (header.is_transactional)
    assert not (header.is_control)
    assert not (header.timestamp_type)
    assert header.last_sequence == -1


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_header_is_read_at_its_position_in_any_buffer(kind):
    assert read_header(kind(b"junk" + BATCH), 4) == read_header(BATCH)


@pytest.mark.parametrize(("base", "records", "last"), [(2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 5, 2)])
def test_sequences_go_on_at_zero_after_the_largest(base, records, last):
    batch = build_batch([Record()] * records, producer_id=1, producer_epoch=0, base_sequence=base)

    assert read_header(batch).last_sequence == last


@each_case("size", [0, 1, 12, 16, 17, 60])
def test_a_short_header_is_malformed(size):
    with pytest.raises(MalformedMessage):
        read_header(BATCH[:size])


@each_case("length", [48, 0, -1, -(2**31)])
def test_a_batch_shorter_than_its_header_is_malformed(length):
    with pytest.raises(MalformedMessage):
        read_header(BATCH[:8] + struct.pack(">i", length) + BATCH[12:])


def test_a_good_batch_is_valid():
    validate(read_header(BATCH), BATCH)


@each_case("position", range(17, len(BATCH)))
def test_a_flipped_bit_behind_the_magic_is_corruption(position):
    broken = bytearray(BATCH)
    broken[position] ^= 1

    assert refusal(bytes(broken)) is ErrorCode.CORRUPT_MESSAGE


def test_a_cut_batch_is_corruption():
    assert refusal(BATCH[:-1]) is ErrorCode.CORRUPT_MESSAGE


@each_case(
    "fields",
    [
        {"record_count": 2},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -1, "last_offset_delta": -2},
        {"last_offset_delta": 5},
        {"base_sequence": -1},
        {"attributes": 0x20},
        {"attributes": 5},
    ],
)
def test_an_intact_batch_that_contradicts_itself_is_an_invalid_record(fields):
    assert refusal(forged(**fields)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("fields", [{"record_count": 1}, {"attributes": 0x20}, {"base_sequence": -1}])
def test_a_logs_own_batches_may_be_what_no_producer_may_send(fields):
    batch = forged(**fields)

    ensure_intact(read_header(batch), batch)


@pytest.mark.parametrize(("magic", "code"), [(0, ErrorCode.INVALID_RECORD), (1, ErrorCode.INVALID_RECORD)])
def test_an_old_message_is_refused_as_such_however_short(magic, code):
    message = struct.pack(">qiibb", 0, 14, 0, magic, 0) + struct.pack(">ii", -1, -1)

    assert refusal(message) is code


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic_is_corruption(magic):
    assert refusal(forged(magic=magic)) is ErrorCode.CORRUPT_MESSAGE


@given(offset=st.integers(0, 2**63 - 1), epoch=st.integers(0, 2**31 - 1), position=st.integers(0, 3))
def test_a_stamped_batch_differs_in_offset_and_epoch_only_and_stays_intact(offset, epoch, position):
    buffer = bytes(position) + BATCH
    header = read_header(buffer, position)

    head = stamped_head(header.batch_length, offset, epoch)
    stamped = head + buffer[position + len(head) :]

    assert read_header(stamped) == header._replace(base_offset=offset, partition_leader_epoch=epoch)
    assert stamped[16:] == BATCH[16:]
    ensure_intact(read_header(stamped), stamped)


@given(offset=st.integers(0, 2**62), time_ms=st.integers(-1, 2**62), position=st.integers(0, 3))
def test_append_time_replaces_every_records_timestamp_and_stays_intact(offset, time_ms, position):
    buffer = bytes(position) + BATCH
    header = read_header(buffer, position)

    head = stamped_head_append_time(header, buffer, position, offset, 4, time_ms)
    stamped = head + buffer[position + len(head) :]

    validate(read_header(stamped), stamped)
    expected = [record._replace(offset=offset + index, timestamp=time_ms) for index, record in enumerate(RECORDS)]
    assert list(read_records(stamped)) == expected
    assert read_header(stamped).timestamp_type == LOG_APPEND_TIME


def test_batches_are_found_one_behind_the_other_up_to_an_incomplete_one():
    other = build_batch([Record(value=bytes(300))], base_offset=3)

    for cut in (1, 17, 61, len(BATCH) - 1):
        found = list(iter_batches(BATCH + other + BATCH[:cut]))
        assert found == [(0, read_header(BATCH)), (len(BATCH), read_header(other))]


@each_case("nonsense", [bytes(17), b"\xff" * 17, forged(magic=3), forged(magic=-1)])
def test_nonsense_among_batches_is_malformed(nonsense):
    with pytest.raises(MalformedMessage):
        list(iter_batches(BATCH + nonsense))


def test_random_bytes_are_refused_with_a_typed_error_or_read():
    rng = random.Random(20)
    for _ in range(2_000):
        junk = rng.randbytes(rng.randrange(120))
        try:
            list(iter_batches(junk))
            validate(read_header(junk), junk)
        except (MalformedMessage, KafkaError):
            pass


def test_the_crc_is_castagnolis():
    assert batch_crc(bytes(21) + b"123456789", 0, 30) == 0xE3069283


def test_the_crcs_package_and_the_codecs_stay_out_of_start_up():
    program = (
        "import sys, odradek.protocol.records; print({'crc32c', 'cramjam', 'mmap', 'importlib.metadata'} & set(sys.modules))"
    )

    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert output == "set()\n"
