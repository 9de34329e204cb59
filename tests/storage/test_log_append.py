"""What ``Log.append`` takes and refuses, as Kafka's UnifiedLog and LogValidator do."""

import struct

import pytest

from odradek.protocol.errors import ErrorCode, InvalidRecords, KafkaError
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import (
    CREATE_TIME,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    ensure_intact,
    iter_batches,
    read_header,
    sealed,
    validate,
)
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.log.log_config import LogConfig
from tests.cases import each_case
from tests.storage.support import NOW_MS, append, batch, open_log, read

HOUR_MS = 60 * 60 * 1000


def refusal(log, records, **options):
    before = log.log_end_offset, log.size_bytes
    with pytest.raises(KafkaError) as caught:
        append(log, records, **options)
    assert (log.log_end_offset, log.size_bytes) == before
    return caught.value


def patched(records, position, layout, *values):
    """``records`` with a header field changed and the CRC put right."""
    from odradek.protocol.record_batch import batch_crc

    data = bytearray(records)
    struct.pack_into(layout, data, position, *values)
    struct.pack_into(">I", data, 17, batch_crc(data, 0, len(data)))
    return bytes(data)


def test_offsets_follow_on_from_one_another():
    log = open_log()
    first, second = append(log, batch(3)), append(log, batch(2))
    assert (first.first_offset, first.last_offset, second.first_offset, second.last_offset) == (0, 2, 3, 4)
    assert log.log_end_offset == 5


def test_what_lies_in_the_log_is_the_batch_with_offset_and_leader_epoch_in_front():
    log = open_log()
    append(log, batch(3))
    sent = batch(2, value=b"second")
    append(log, sent, leader_epoch=7)
    stored = read(log, 3)
    header = read_header(stored)
    assert (header.base_offset, header.partition_leader_epoch, stored[16:]) == (3, 7, sent[16:])


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(wrap):
    log = open_log()
    append(log, wrap(batch()))
    validate(read_header(read(log, 0)), read(log, 0))


@each_case("records", [b"", b"\0" * 16, batch()[:30], batch()[:-1]])
def test_no_whole_batch_is_an_invalid_record(records):
    assert refusal(open_log(), records).code == ErrorCode.INVALID_RECORD


def test_two_batches_are_an_invalid_record():
    assert refusal(open_log(), batch() + batch()).code == ErrorCode.INVALID_RECORD


def test_a_part_of_a_second_batch_is_cut_off():
    log = open_log()
    append(log, batch() + batch()[:-1])
    assert read(log, 0)[16:] == batch()[16:]


def test_a_second_batch_of_impossible_length_is_corrupt():
    second = batch()[:8] + struct.pack(">i", 5) + batch()[12:]
    assert refusal(open_log(), batch() + second).code == ErrorCode.CORRUPT_MESSAGE


def test_a_length_that_no_batch_has_is_corrupt():
    records = batch()[:8] + struct.pack(">i", 3) + batch()[12:]
    assert refusal(open_log(), records).code == ErrorCode.CORRUPT_MESSAGE


def test_a_flipped_byte_is_corrupt():
    records = bytearray(batch())
    records[-1] ^= 1
    assert refusal(open_log(), records).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_format_is_an_invalid_record(magic):
    records = bytearray(batch())
    records[16] = magic
    assert refusal(open_log(), records).code == ErrorCode.INVALID_RECORD


def test_a_batch_does_not_begin_with_another_offset_than_0():
    assert refusal(open_log(), batch(base_offset=1)).code == ErrorCode.INVALID_RECORD


def test_a_control_batch_is_refused():
    assert refusal(open_log(), batch(control=True)).code == ErrorCode.INVALID_RECORD


def test_counts_that_contradict_each_other_are_refused():
    assert refusal(open_log(), patched(batch(2), 57, ">i", 3)).code == ErrorCode.INVALID_RECORD


def test_a_producer_id_without_a_sequence_is_refused():
    assert refusal(open_log(), batch(producer_id=1, producer_epoch=0)).code == ErrorCode.INVALID_RECORD


def test_a_transactional_batch_of_no_ongoing_transaction_is_refused():
    records = batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert refusal(open_log(), records).code == ErrorCode.INVALID_TXN_STATE


def test_max_message_bytes_is_the_largest_batch():
    records = batch(value=b"x" * 500)
    append(open_log(config=LogConfig(max_message_bytes=len(records))), records)
    refused = refusal(open_log(config=LogConfig(max_message_bytes=len(records) - 1)), records)
    assert refused.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_no_segment_holds_is_refused():
    records = batch(value=b"x" * 500)
    log = open_log(config=LogConfig(segment_bytes=len(records) - 1))
    assert refusal(log, records).code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_compacted_topic_wants_a_key_in_every_record():
    log = open_log(config=LogConfig(cleanup_policy=("compact", "delete")))
    keyed, bare = Record(timestamp=NOW_MS, key=b"k"), Record(timestamp=NOW_MS)
    refused = refusal(log, build_batch([keyed, bare, keyed, bare]))
    assert (type(refused), refused.code) == (InvalidRecords, ErrorCode.INVALID_RECORD)
    assert [index for index, _ in refused.record_errors] == [1, 3]
    append(log, build_batch([keyed, keyed]))


def test_records_that_cannot_be_opened_are_invalid_where_they_must_be():
    log = open_log(config=LogConfig(cleanup_policy=("compact",)))
    data = bytearray(batch(key=b"k"))
    data[61] = 0x7F
    assert refusal(log, patched(data, 61, ">B", 0x7F)).code == ErrorCode.INVALID_RECORD


def test_a_record_from_too_far_in_the_future_is_refused():
    log = open_log()
    late, well = Record(timestamp=NOW_MS + HOUR_MS + 1), Record(timestamp=NOW_MS + HOUR_MS)
    refused = refusal(log, build_batch([well, late]))
    assert (refused.code, [index for index, _ in refused.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])
    append(log, build_batch([well]))


def test_a_record_from_too_far_in_the_past_is_refused():
    log = open_log(config=LogConfig(message_timestamp_before_max_ms=1000))
    well, old, none = Record(timestamp=NOW_MS - 1000), Record(timestamp=NOW_MS - 1001), Record(timestamp=-1)
    refused = refusal(log, build_batch([well, old, well]))
    assert (refused.code, [index for index, _ in refused.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])
    append(log, build_batch([well, none]))


def without_max_timestamp(*timestamps, **options):
    """A batch as sarama up to 1.45.0 writes it: the header has no max timestamp."""
    return patched(build_batch([Record(timestamp=timestamp) for timestamp in timestamps], **options), 35, ">q", -1)


@each_case("codec", range(5))
def test_a_header_without_max_timestamp_gets_that_of_its_records(codec):
    log = open_log()
    append(log, batch(timestamp=NOW_MS - 9))
    append(log, without_max_timestamp(NOW_MS - 5, NOW_MS - 3, NOW_MS - 4, compression=codec))
    append(log, batch(timestamp=NOW_MS - 1))
    stored = read(log, 1)
    header = read_header(stored)
    validate(header, stored[: header.size_bytes])
    assert (header.base_timestamp, header.max_timestamp, header.compression) == (NOW_MS - 5, NOW_MS - 3, codec)
    assert [log.offset_for_timestamp(NOW_MS - ago).offset for ago in (9, 8, 5, 4, 3, 2)] == [0, 1, 1, 2, 2, 4]


def test_the_largest_timestamp_may_be_in_a_batch_whose_header_has_none():
    log = open_log()
    append(log, batch(timestamp=NOW_MS - 9))
    append(log, without_max_timestamp(NOW_MS - 5, NOW_MS - 3))
    append(log, batch(timestamp=NOW_MS - 7))
    assert log.max_timestamp_offset()[:2] == (NOW_MS - 3, 2)


@each_case("said", [-1, -7, 0, NOW_MS - 6])
def test_a_max_timestamp_below_the_base_timestamp_is_corrected(said):
    log = open_log()
    append(log, patched(build_batch([Record(timestamp=NOW_MS - 5), Record(timestamp=NOW_MS - 8)]), 35, ">q", said))
    assert read_header(read(log, 0)).max_timestamp == NOW_MS - 5


def test_records_without_timestamps_have_no_max_timestamp():
    log = open_log()
    append(log, batch(timestamp=-1))
    append(log, build_batch([Record(timestamp=-1), Record(timestamp=NOW_MS)]))
    append(log, without_max_timestamp(-1, NOW_MS))
    assert [read_header(read(log, offset)).max_timestamp for offset in (0, 1, 3)] == [-1, NOW_MS, NOW_MS]


def test_a_record_from_the_future_is_refused_though_its_header_has_no_max_timestamp():
    log = open_log()
    refused = refusal(log, without_max_timestamp(NOW_MS, NOW_MS + 48 * HOUR_MS))
    assert (refused.code, [index for index, _ in refused.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])


def test_a_compacted_topic_has_the_max_timestamps_of_its_records():
    log = open_log(config=LogConfig(cleanup_policy=("compact",)))
    append(log, patched(build_batch([Record(timestamp=NOW_MS - 5, key=b"k")]), 35, ">q", NOW_MS))
    assert read_header(read(log, 0)).max_timestamp == NOW_MS - 5


def test_log_append_time_needs_no_max_timestamp():
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    append(log, without_max_timestamp(NOW_MS + 48 * HOUR_MS))
    assert read_header(read(log, 0)).max_timestamp == NOW_MS


def test_log_append_time_replaces_the_timestamps_and_keeps_the_crc_right():
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    info = append(log, batch(2, timestamp=5), now_ms=NOW_MS + 3)
    stored = read(log, 0)
    validate(read_header(stored), stored)
    assert info.log_append_time_ms == NOW_MS + 3
    assert [record.timestamp for record in read_records(stored)] == [NOW_MS + 3] * 2


def test_the_brokers_own_batches_and_markers_get_the_append_time_too():
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    append(log)
    log.coordinator_appends.append_internal([(b"a", b"1"), (b"b", b"2")], leader_epoch=4, now_ms=NOW_MS + 3)
    marker = log.coordinator_appends.append_marker(7, 0, 1, True, leader_epoch=4, now_ms=NOW_MS + 9)
    assert (marker.first_offset, marker.log_append_time_ms) == (3, NOW_MS + 9)
    stored = read(log, 1)
    found = []
    for position, header in iter_batches(stored):
        ensure_intact(header, stored, position)
        found.append((header.base_offset, header.timestamp_type, header.max_timestamp, header.partition_leader_epoch))
    assert found == [
        (1, LOG_APPEND_TIME, NOW_MS + 3, 4),
        (3, LOG_APPEND_TIME, NOW_MS + 9, 4),
    ]


def test_log_append_time_takes_any_timestamp():
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=0))
    append(log, batch(timestamp=NOW_MS * 2))
    append(log, batch(timestamp=0))


def test_create_time_answers_no_append_time():
    assert append(open_log()).log_append_time_ms == -1


def test_a_producer_does_not_stamp_log_append_time_itself():
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    assert refusal(log, batch(timestamp_type=1)).code == ErrorCode.INVALID_TIMESTAMP


def test_the_timestamp_type_of_a_create_time_topic_is_the_topics():
    log = open_log()
    append(log, batch(timestamp_type=1))
    stored = read(log, 0)
    header = read_header(stored)
    validate(header, stored)
    assert (header.timestamp_type, header.max_timestamp) == (0, NOW_MS)


@each_case(("name", "codec"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_a_topic_with_a_compression_type_keeps_batches_in_it(name, codec):
    log = open_log(config=LogConfig(compression_type=name))
    sent = batch(3, compression=2 if codec == 1 else 1, producer_id=9, producer_epoch=1, base_sequence=4)
    append(log, sent)
    stored = read(log, 0)
    header = read_header(stored)
    validate(header, stored)
    assert header.compression == codec
    assert header[9:] == read_header(sent)[9:]
    assert list(read_records(stored)) == list(read_records(sent))


@pytest.mark.parametrize(("name", "codec", "low", "high"), [("gzip", 1, 1, 9), ("lz4", 3, 9, 12), ("zstd", 4, -7, 19)])
def test_a_topics_compression_level_holds_where_a_batch_is_recompressed(name, codec, low, high):
    value = b"".join(number.to_bytes(2, "big") * (number % 7) for number in range(5000))
    sizes = []
    for level in (low, high):
        log = open_log(config=LogConfig(compression_type=name, **{f"compression_{name}_level": level}))
        append(log, batch(value=value))
        sizes.append(log.size_bytes)
    assert sizes[0] > sizes[1]


def test_recompressed_a_batch_may_be_too_large():
    records = batch(value=b"x" * 5000, compression=1)
    log = open_log(config=LogConfig(compression_type="uncompressed", max_message_bytes=5000))
    assert refusal(log, records).code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_in_the_topics_codec_stays_as_it_is():
    log = open_log(config=LogConfig(compression_type="zstd"))
    sent = batch(3, compression=4)
    append(log, sent)
    assert read(log, 0)[16:] == sent[16:]


def test_a_new_config_counts_from_the_next_append():
    log = open_log()
    append(log)
    log.config = LogConfig(cleanup_policy=("compact",))
    assert refusal(log, batch()).code == ErrorCode.INVALID_RECORD


def test_the_brokers_own_records_are_a_batch_at_the_logs_end():
    log = open_log()
    append(log)
    size = log.coordinator_appends.append_internal([(b"a", b"1"), (b"b", None)], leader_epoch=4, now_ms=NOW_MS)
    stored = read(log, 1)
    header = read_header(stored)
    ensure_intact(header, stored)
    assert (size, log.log_end_offset) == (len(stored), 3)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (1, 2, 4)
    assert (header.timestamp_type, header.max_timestamp) == (CREATE_TIME, NOW_MS)
    assert [(offset, key, value) for offset, key, value in read_batch(stored)] == [(1, b"a", b"1"), (2, b"b", None)]


def test_a_full_disk_is_a_storage_error_and_the_log_goes_on_after_it(monkeypatch):
    log = open_log()
    append(log)
    file = log.segments.active.file

    def refuse(self, buffers):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(file), "append", refuse)
        assert refusal(log, batch()).code == ErrorCode.KAFKA_STORAGE_ERROR
    assert append(log).first_offset == 1


def test_a_batch_that_could_not_be_synced_is_not_acknowledged_as_a_duplicate_either(monkeypatch):
    log = open_log(config=LogConfig(flush_messages=1))
    records = batch(producer_id=7, producer_epoch=0, base_sequence=0)

    def refuse(self):
        raise OSError(5, "Input/output error")

    codes = []
    with monkeypatch.context() as patch:
        patch.setattr(type(log.segments.active.file), "sync", refuse)
        with pytest.raises(KafkaError) as first:
            append(log, records)
        codes.append(first.value.code)
    codes.append(refusal(log, records).code)
    assert (codes, log.recovery_point) == ([ErrorCode.KAFKA_STORAGE_ERROR] * 2, 0)


def test_a_clean_close_syncs_a_log_whose_append_failed(monkeypatch):
    log = open_log()
    append(log)
    log.flush(NOW_MS)
    file_type = type(log.segments.active.file)

    def refuse(self, buffers):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(file_type, "append", refuse)
        refusal(log, batch())
    synced = []

    def sync(self):
        synced.append(self)

    monkeypatch.setattr(file_type, "sync", sync)
    log.close(clean=True, now_ms=NOW_MS)
    assert log.segments.active.file in synced


def test_flush_messages_moves_the_recovery_point_with_the_appends():
    log = open_log(config=LogConfig(flush_messages=3))
    append(log, batch(2))
    before = log.recovery_point
    append(log, batch(1))
    assert (before, log.recovery_point) == (0, 3)


def test_an_append_takes_note_of_a_new_leader_epoch():
    log = open_log()
    append(log, leader_epoch=2)
    append(log, batch(4), leader_epoch=2)
    append(log, leader_epoch=5)
    assert (log.leader_epochs.entries, log.end_offset_for_epoch(3)) == (((2, 0), (5, 5)), (2, 5))


BAD_RECORDS = {
    "a count that no batch has": (bytes([16, 0, 0, 0, 2, 107, 2, 118, 0]), 2**31 - 1, 0),
    "a length of -5": (bytes([9, 0, 0, 0, 2, 107, 2, 118, 0]), 1, 0),
    "a record less": (bytes([16, 0, 0, 0, 2, 107, 2, 118, 0]), 2, 0),
    "junk that is not zstd": (b"junkjunk!", 1, 4),
    "junk that is not gzip": (b"junkjunk!", 2**31 - 1, 1),
}


@each_case("config", [LogConfig(), LogConfig(cleanup_policy=("compact",)), LogConfig(compression_type="zstd")])
@each_case(("payload", "count", "codec"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_records_that_cannot_be_are_refused_on_any_topic(payload, count, codec, config):
    header = HEADER.pack(0, HEADER_SIZE - 12 + len(payload), -1, 2, 0, codec, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count)
    log = open_log(config=config)
    assert refusal(log, sealed(header, payload)).code == ErrorCode.INVALID_RECORD
