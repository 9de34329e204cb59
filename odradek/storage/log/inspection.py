"""Inspection of a produced batch's records, if the topic's configuration requires it or another codec.

No record objects are built: a walk checks keys and timestamps (``odradek.protocol.record_walk``), and another codec gets the same
bytes. A batch that may take long is not opened at once. Instead ``LongInspection`` is raised, to be run off the event loop. The
header of an opened batch gets the max timestamp of its records: sarama up to 1.45.0 always writes -1.

Limits, which Kafka does not have: at most ``MOST_RECORD_ERRORS`` records are reported, and later ones are not checked. A batch
may decompress to 20 times its size, or 64 MiB if that is more.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from odradek.protocol.compression import TooMuchData, compress, decompressed_view
from odradek.protocol.errors import ErrorCode, InvalidRecords, KafkaError, MalformedMessage
from odradek.protocol.record_batch import (
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    batch_crc,
    sealed,
)
from odradek.protocol.record_walk import RecordWalk, most_decompressed_bytes
from odradek.storage.log.log_config import LogConfig

MOST_RECORD_ERRORS: Final = 100
_SHOWN_ERRORS: Final = 3
# The largest batch opened at once: a millisecond of work.
_SHORT_RECORDS: Final = 512
_SHORT_BYTES: Final = 256 * 1024
# The records between two calls of ``pause``: a fifth of a millisecond if the walk is compiled and no other thread runs.
_RECORDS_AT_ONCE: Final = 2_000


class LongInspection(Exception):
    """A batch that takes long to open. Nothing has been appended. It has its own copy of the batch's bytes."""

    def __init__(self, records: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
        super().__init__()
        self._records = bytes(records[: header.size_bytes])
        self._header = header
        self._config = config
        self._now_ms = now_ms

    def run(self, pause: Callable[[], None]) -> Buffer:
        """Return the batch to append (``inspect``), on any thread. Calls ``pause`` every millisecond or so; it may raise."""
        size = len(self._records)
        most_bytes = most_decompressed_bytes(size)
        try:
            return _inspected(self._records, self._header, self._config, self._now_ms, most_bytes, pause)
        except TooMuchData:
            reason = f"{size} bytes decompress to more than {most_bytes}"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, reason) from None


def inspect(records: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> Buffer:
    """Check each record of a valid batch as ``config`` requires. Return the batch to append, the same or rewritten.

    KafkaError: INVALID_RECORD, INVALID_TIMESTAMP (both with record errors), INVALID_TXN_STATE, MESSAGE_TOO_LARGE. Raises
    LongInspection.
    """
    if header.timestamp_type == LOG_APPEND_TIME and config.stamps_append_time:
        reason = "a producer cannot set the timestamp type to LogAppendTime"
        shown = min(header.record_count, MOST_RECORD_ERRORS)
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, reason, tuple((index, reason) for index in range(shown)))
    try:
        return _inspected(records, header, config, now_ms, _SHORT_BYTES, None)
    except TooMuchData:
        raise LongInspection(records, header, config, now_ms) from None


def _inspected(
    records: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, most_bytes: int, pause: Callable[[], None] | None
) -> Buffer:
    """Inspect off the loop if there is a ``pause``; otherwise at once, and raise LongInspection if it takes long."""
    judges = config.is_compacted or _may_be_out_of_time(header, config, now_ms)
    target = config.target_codec
    recompresses = target is not None and target != header.compression
    data: Buffer = b""
    max_timestamp = header.max_timestamp
    if judges or recompresses:
        if pause is None and (header.record_count > _SHORT_RECORDS or (recompresses and len(records) > _SHORT_BYTES)):
            raise LongInspection(records, header, config, now_ms)
        try:
            data = decompressed_view(header.compression, memoryview(records)[HEADER_SIZE : header.size_bytes], most_bytes)
            walk = _walk(header, data, config, now_ms, judges, pause or _takes_long)
            walk.go_on(_RECORDS_AT_ONCE)
            while not walk.is_done:
                (pause or _takes_long)()
                walk.go_on(_RECORDS_AT_ONCE)
        except TooMuchData:
            raise
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from error
        if walk.refused:
            _refuse(walk, header, config, now_ms)
        max_timestamp = walk.max_timestamp
    if header.is_transactional and header.producer_id < 0:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the transactional record batch has no producer id")
    if target is not None and recompresses:
        return _recompressed(data, header, config, target, max_timestamp)
    if header.timestamp_type == LOG_APPEND_TIME or max_timestamp != header.max_timestamp:
        return _corrected(records, header, max_timestamp)
    return records


def _may_be_out_of_time(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    if config.stamps_append_time:
        return False
    is_understated = header.max_timestamp < header.base_timestamp or header.max_timestamp < 0
    return config.limits_old_timestamps or is_understated or header.max_timestamp - now_ms > config.message_timestamp_after_max_ms


def _takes_long() -> NoReturn:
    """Stand in for ``pause`` on the event loop, which has no time for so many headers."""
    raise TooMuchData("records with thousands of headers")


def _walk(
    header: BatchHeader, data: Buffer, config: LogConfig, now_ms: int, judges: bool, pause: Callable[[], None]
) -> RecordWalk:
    if not judges:
        return RecordWalk(header, data, pause=pause)
    if config.stamps_append_time:
        return RecordWalk(header, data, wants_key=config.is_compacted, most_refused=MOST_RECORD_ERRORS, pause=pause)
    earliest, latest = _bounds(config, now_ms)
    return RecordWalk(
        header,
        data,
        wants_key=config.is_compacted,
        earliest=earliest,
        latest=latest,
        most_refused=MOST_RECORD_ERRORS,
        pause=pause,
    )


def _bounds(config: LogConfig, now_ms: int) -> tuple[int, int]:
    """Return the earliest and the latest timestamp that a record may have."""
    return now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms


def _refuse(walk: RecordWalk, header: BatchHeader, config: LogConfig, now_ms: int) -> NoReturn:
    """Raise InvalidRecords for records that lack a required key, or have a timestamp outside the topic's limits."""
    earliest, latest = _bounds(config, now_ms)
    code = ErrorCode.INVALID_RECORD
    errors: list[tuple[int, str]] = []
    for index, timestamp, has_key, _ in walk.refused:
        if config.is_compacted and not has_key:
            errors.append((index, "a compacted topic does not accept records without a key"))
        else:
            errors.append((index, f"timestamp {timestamp} is not within [{earliest}, {latest}]"))
            code = ErrorCode.INVALID_TIMESTAMP
    least = "at least " if len(errors) >= MOST_RECORD_ERRORS else ""
    shown = "; ".join(f"record {index}: {reason}" for index, reason in errors[:_SHOWN_ERRORS])
    reason = f"{least}{len(errors)} of {header.record_count} records refused: {shown}"
    raise InvalidRecords(code, reason, tuple(errors))


def _recompressed(data: Buffer, header: BatchHeader, config: LogConfig, codec: int, max_timestamp: int) -> bytes:
    """Return the batch in the topic's own codec (``compression.type``). ``data`` is its records."""
    payload = compress(codec, data, config.target_level)
    size = HEADER_SIZE + len(payload)
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record batch has {size} bytes after recompression, but max.message.bytes is {config.max_message_bytes}",
        )
    rewritten = header._replace(
        batch_length=size - LOG_OVERHEAD,
        attributes=header.attributes & TRANSACTIONAL_MASK | codec,
        max_timestamp=max_timestamp,
    )
    return sealed(HEADER.pack(*rewritten), payload)


def _corrected(records: Buffer, header: BatchHeader, max_timestamp: int) -> bytes:
    """Return the batch with ``max_timestamp``, and without the timestamp type, which only the broker may set."""
    batch = bytearray(records[: header.size_bytes])
    header = header._replace(attributes=header.attributes & ~TIMESTAMP_TYPE_MASK, max_timestamp=max_timestamp)
    HEADER.pack_into(batch, 0, *header)
    HEADER.pack_into(batch, 0, *header._replace(crc=batch_crc(batch, 0, len(batch))))
    return bytes(batch)
