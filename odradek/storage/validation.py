"""Which produced batches a log admits, and what it rewrites in them.

A batch is opened only where a config asks for something about each record: a compacted topic wants keys, a timestamp limit wants
timestamps, ``compression.type`` may want another codec. As in Kafka's LogValidator, one bad record refuses the batch, and each
bad record is reported (KIP-467).

Left out: batches whose header gives a wrong max timestamp are kept as they are, where Kafka corrects the header.
"""

from struct import Struct
from typing import Final

from odradek.protocol.errors import ErrorCode, InvalidRecords, KafkaError, MalformedMessage
from odradek.protocol.record_batch import (
    HEADER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    batch_crc,
    read_header,
    validate,
)
from odradek.protocol.records import Record, build_batch, read_records
from odradek.storage.log_config import LogConfig
from odradek.storage.log_settings import LogSettings

_LENGTH: Final = Struct(">8xi")
# Offset, length, and on to the magic: less is not yet a batch to Kafka, but the beginning of one.
_SHORTEST_HEAD_BYTES: Final = 17
_SHORTEST_MESSAGE_BYTES: Final = 14
_SHOWN_ERRORS: Final = 3


def admitted(records: Buffer, header: BatchHeader | None, settings: LogSettings, now_ms: int) -> tuple[BatchHeader, Buffer]:
    """The header and the bytes of a produced batch that may be appended; rewritten if the topic's configuration wants it.

    ``header`` is that of ``records``, if the caller has read it. KafkaError: see ``Log.append``.
    """
    if header is None:
        try:
            header = read_header(records)
        except MalformedMessage as error:
            raise _refuse_malformed(records, error) from error
    size = header.batch_length + LOG_OVERHEAD
    if len(records) != size:
        _ensure_one_batch(records, size)
    if header.base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the record batch begins with offset {header.base_offset}, not 0")
    if size > settings.max_message_bytes:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{size} bytes, and max.message.bytes is {settings.max_message_bytes}")
    validate(header, records)
    if (
        settings.inspects_all
        or header.max_timestamp - now_ms > settings.latest_in_ms
        or header.attributes & TIMESTAMP_TYPE_MASK
        or (header.attributes & TRANSACTIONAL_MASK and header.producer_id < 0)
    ):
        inspected = _inspect(records, header, settings.config, now_ms)
        if inspected is not records:
            records, header = inspected, read_header(inspected)
            size = header.batch_length + LOG_OVERHEAD
    if size > settings.segment_bytes:
        raise too_large_for_segment(size, settings.segment_bytes)
    return header, records


def too_large_for_segment(size: int, segment_bytes: int) -> KafkaError:
    """The error for a batch of ``size`` bytes, more than ``segment.bytes``."""
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes, and segment.bytes is {segment_bytes}")


def _refuse_malformed(records: Buffer, cause: MalformedMessage) -> KafkaError:
    """The error for a produce request's records that ``read_header`` cannot read."""
    if len(records) >= _SHORTEST_HEAD_BYTES:
        (batch_length,) = _LENGTH.unpack_from(records)
        if batch_length < _SHORTEST_MESSAGE_BYTES or batch_length + 12 <= len(records):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, cause.reason)
    return KafkaError(ErrorCode.INVALID_RECORD, "there must be one record batch, and there is none")


def _ensure_one_batch(records: Buffer, size: int) -> None:
    """Raise unless ``records`` is one batch of ``size`` bytes and at most the beginning of another one.

    KafkaError: INVALID_RECORD (a Produce request of version 3 or later holds one batch a partition); CORRUPT_MESSAGE.
    """
    rest = len(records) - size
    if rest < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a record batch of {size} bytes in {len(records)}")
    if rest < _SHORTEST_HEAD_BYTES:
        return
    (batch_length,) = _LENGTH.unpack_from(records, size)
    if batch_length < _SHORTEST_MESSAGE_BYTES:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a second record batch of length {batch_length}")
    if batch_length + 12 <= rest:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there must be one record batch, and there are more")


def _inspect(records: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> Buffer:
    """Check each record of a valid batch as ``config`` demands; returns the batch to append, the same or a rewritten one.

    KafkaError: INVALID_RECORD, INVALID_TIMESTAMP (both with record errors), INVALID_TXN_STATE, MESSAGE_TOO_LARGE.
    """
    if header.timestamp_type == LOG_APPEND_TIME and config.stamps_append_time:
        reason = "a producer does not set the timestamp type to LogAppendTime"
        errors = tuple((index, reason) for index in range(header.record_count))
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, reason, errors)
    if config.is_compacted or _may_be_out_of_time(header, config, now_ms):
        _check_records(_read_all(records), header, config, now_ms)
    if header.is_transactional and header.producer_id < 0:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, "a transactional record batch without a producer id")
    target = config.target_codec
    if target is not None and target != header.compression:
        return _recompressed(records, header, config, target)
    if header.timestamp_type == LOG_APPEND_TIME:
        return _as_create_time(records, header)
    return records


def _may_be_out_of_time(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    if config.stamps_append_time:
        return False
    return config.limits_old_timestamps or header.max_timestamp - now_ms > config.message_timestamp_after_max_ms


def _read_all(records: Buffer) -> list[Record]:
    try:
        return list(read_records(records))
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from error


def _check_records(records: list[Record], header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Raise InvalidRecords if a record has no key where it needs one, or a timestamp out of the topic's limits."""
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    code = ErrorCode.INVALID_RECORD
    errors: list[tuple[int, str]] = []
    for index, record in enumerate(records):
        if config.is_compacted and record.key is None:
            errors.append((index, "a compacted topic takes no record without a key"))
        elif not config.stamps_append_time and record.timestamp != -1 and not earliest <= record.timestamp <= latest:
            errors.append((index, f"timestamp {record.timestamp} is not within [{earliest}, {latest}]"))
            code = ErrorCode.INVALID_TIMESTAMP
    if errors:
        shown = "; ".join(f"record {index}: {reason}" for index, reason in errors[:_SHOWN_ERRORS])
        reason = f"{len(errors)} of {header.record_count} records refused: {shown}"
        raise InvalidRecords(code, reason, tuple(errors))


def _recompressed(records: Buffer, header: BatchHeader, config: LogConfig, codec: int) -> bytes:
    """The batch in the topic's own codec (``compression.type``)."""
    batch = build_batch(
        _read_all(records),
        compression=codec,
        compression_level=config.target_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    if len(batch) > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"recompressed, the record batch has {len(batch)} bytes, and max.message.bytes is {config.max_message_bytes}",
        )
    return batch


def _as_create_time(records: Buffer, header: BatchHeader) -> bytes:
    """The batch without the timestamp type that is the broker's to set: a CreateTime topic keeps the producer's timestamps."""
    batch = bytearray(records[: header.size_bytes])
    attributes = header.attributes & ~TIMESTAMP_TYPE_MASK
    HEADER.pack_into(batch, 0, *header._replace(attributes=attributes))
    crc = batch_crc(batch, 0, len(batch))
    HEADER.pack_into(batch, 0, *header._replace(attributes=attributes, crc=crc))
    return bytes(batch)
