"""Opening produced batches: what takes long leaves the caller, and nothing that a few bytes claim is taken at its word."""

import tracemalloc

import pytest

from odradek.protocol.compression import ZSTD, compress
from odradek.protocol.errors import ErrorCode, InvalidRecords, KafkaError
from odradek.protocol.record_batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_MASK,
    ensure_intact,
    read_header,
    sealed,
)
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.log.inspection import MOST_RECORD_ERRORS, LongInspection, inspect
from odradek.storage.log.log_config import LogConfig

NOW_MS = 1_700_000_000_000
COMPACTED = LogConfig(cleanup_policy="compact")
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def bomb(megabytes, record=bytes([12, 0, 0, 0, 1, 1, 0]), timestamp=NOW_MS, attributes=ZSTD):
    """Some hundred bytes of zstd for each megabyte of these records."""
    count = megabytes * 2**20 // len(record)
    payload = compress(ZSTD, record * count)
    size = HEADER_SIZE - LOG_OVERHEAD + len(payload)
    return sealed(HEADER.pack(0, size, -1, MAGIC, 0, attributes, count - 1, timestamp, timestamp, -1, -1, -1, count), payload)


def opened(batch, config, pause=lambda: None):
    """What is to be appended for ``batch``, which takes long."""
    with pytest.raises(LongInspection) as raised:
        inspect(batch, read_header(batch), config, NOW_MS)
    return raised.value.run(pause)


def test_short_batches_are_opened_at_once():
    batch = build_batch([Record(key=b"k", value=bytes(100), timestamp=NOW_MS)] * 100, compression=ZSTD)
    assert inspect(batch, read_header(batch), COMPACTED, NOW_MS) is batch


@pytest.mark.parametrize(
    "records", [[Record(key=b"k", timestamp=1)] * 5_000, [Record(key=b"k", value=bytes(2**20), timestamp=1)]]
)
def test_many_records_and_much_data_take_long_and_are_the_same_then(records):
    batch = build_batch(records, compression=ZSTD)
    assert opened(batch, COMPACTED) == batch


def test_a_long_inspection_outlives_the_bytes_that_it_was_made_of():
    batch = bytearray(build_batch([Record(key=b"k", timestamp=1)] * 5_000))
    with pytest.raises(LongInspection) as raised:
        inspect(memoryview(batch), read_header(batch), COMPACTED, NOW_MS)
    before = bytes(batch)
    batch[:] = bytes(len(batch))
    assert raised.value.run(lambda: None) == before


@pytest.mark.parametrize(
    ("config", "batch", "code"),
    [
        (COMPACTED, bomb(4), ErrorCode.INVALID_RECORD),
        (LogConfig(message_timestamp_after_max_ms=0), bomb(4, timestamp=NOW_MS + 1), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=["keyless", "early"],
)
def test_not_all_of_millions_of_bad_records_are_reported(config, batch, code):
    with pytest.raises(InvalidRecords) as raised:
        opened(batch, config)
    assert raised.value.code == code
    assert [index for index, _ in raised.value.record_errors] == list(range(MOST_RECORD_ERRORS))
    assert raised.value.reason.startswith(f"at least {MOST_RECORD_ERRORS} of ")


def test_fewer_bad_records_are_all_reported():
    records = [Record(key=None if index % 50 == 0 else b"k", timestamp=1) for index in range(1000)]
    with pytest.raises(InvalidRecords) as raised:
        opened(build_batch(records), COMPACTED)
    assert [index for index, _ in raised.value.record_errors] == list(range(0, 1000, 50))
    assert raised.value.reason.startswith("20 of 1000 ")


def test_a_count_that_is_only_claimed_makes_no_errors():
    batch = build_batch([Record(timestamp=1)])
    header = read_header(batch)._replace(record_count=2**31 - 1, attributes=TIMESTAMP_TYPE_MASK)
    with pytest.raises(InvalidRecords) as raised:
        inspect(batch, header, LogConfig(message_timestamp_type="LogAppendTime"), NOW_MS)
    assert len(raised.value.record_errors) == MOST_RECORD_ERRORS


def test_a_batch_that_decompresses_to_more_than_the_limit_is_too_large():
    with pytest.raises(KafkaError, match="67108864") as raised:
        opened(bomb(65), COMPACTED)
    assert raised.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("config", [COMPACTED, LogConfig(compression_type="gzip")], ids=["keys", "codec"])
def test_no_record_of_a_batch_is_built(config):
    # A key of one byte, a value of fifty: 18,000 records, which would take megabytes.
    keyed = bytes([114, 0, 0, 0, 2, 107, 100, *range(50), 0])
    batch = bomb(1, keyed)
    tracemalloc.start()
    try:
        opened(batch, config)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_long_inspection_pauses_often_and_ends_where_its_pause_says():
    pauses = []

    def pause():
        pauses.append(1)
        if len(pauses) == 10:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    with pytest.raises(KafkaError) as raised:
        opened(bomb(4, bytes([14, 0, 0, 0, 2, 107, 1, 0])), COMPACTED, pause)
    assert raised.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("source", [0, *CODECS.values()])
@pytest.mark.parametrize("count", [3, 3_000])
def test_another_codec_has_the_same_records(source, target, count):
    records = [Record(index, NOW_MS + index % 7, b"k", b"v" * (index % 9), (("h", b"x"),)) for index in range(count)]
    batch = build_batch(records, compression=source, producer_id=5, producer_epoch=1, base_sequence=7, transactional=True)
    config = LogConfig(compression_type=target)
    if source == CODECS[target]:
        assert inspect(batch, read_header(batch), config, NOW_MS) is batch
        return
    result = opened(batch, config) if count > 1000 else inspect(batch, read_header(batch), config, NOW_MS)
    header = read_header(result)
    ensure_intact(header, result)
    assert header.compression == CODECS[target]
    assert list(read_records(result)) == records
    was = read_header(batch)
    assert header._replace(batch_length=0, crc=0, attributes=0) == was._replace(batch_length=0, crc=0, attributes=0)
    assert header.is_transactional


def test_another_codec_gets_the_max_timestamp_that_its_records_have():
    batch = build_batch([Record(timestamp=NOW_MS), Record(timestamp=NOW_MS - 5)])
    header = read_header(batch)._replace(max_timestamp=NOW_MS + 9)
    result = inspect(batch, header, LogConfig(compression_type="lz4"), NOW_MS)
    assert read_header(result).max_timestamp == NOW_MS


@pytest.mark.parametrize(
    "records",
    [
        [Record(key=b"k", headers=(("h", b""),) * 20_000, timestamp=NOW_MS)],
        [Record(key=b"k", headers=(("h", b""),) * 100, timestamp=NOW_MS)] * 200,
    ],
    ids=["of one record", "of many"],
)
def test_many_headers_take_long(records):
    batch = build_batch(records)
    paused = []
    assert opened(batch, COMPACTED, lambda: paused.append(None)) == batch
    assert len(paused) >= 9
