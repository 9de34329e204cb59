"""Validates produced batches, and rewrites them if needed.

In every batch, the first records must match their lengths, and all records must have room (``record_walk``). All records are
checked only if a config requires it (``inspection``): a compacted topic needs keys, a timestamp limit needs timestamps,
``compression.type`` may need another codec. A batch whose header understates its max timestamp is also opened, and corrected. As
in Kafka's LogValidator, one bad record refuses the batch, and bad records are reported (KIP-467).

Left out: a check of every record of every batch. A wrong but plausible max timestamp stays as it is; Kafka corrects it.
"""

from struct import Struct
from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import (
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    read_header,
    validate,
)
from odradek.protocol.record_walk import ensure_bounds
from odradek.storage.log.inspection import inspect
from odradek.storage.log.local_log import LogSettings

_LENGTH: Final = Struct(">8xi")
# Offset, length, and so on up to the magic. To Kafka, fewer bytes are only the beginning of a batch.
_SHORTEST_HEAD_BYTES: Final = 17
_SHORTEST_MESSAGE_BYTES: Final = 14
_MAGIC_AT: Final = 16


def admitted(
    records: Buffer, header: BatchHeader | None, settings: LogSettings, now_ms: int, is_inspected: bool = False
) -> tuple[BatchHeader, Buffer]:
    """Return header and bytes of a produced batch that may be appended, rewritten if the topic's configuration requires it.

    ``header`` is the header of ``records``, if the caller has read it. KafkaError, LongInspection: see ``Log.append``.
    """
    if header is None:
        try:
            header = read_header(records)
        except MalformedMessage as error:
            raise _refuse_malformed(records, error) from error
    base_offset, length, _, _, _, attributes, _, base_timestamp, max_timestamp, producer_id, _, _, count = header
    size = length + LOG_OVERHEAD
    if len(records) != size:
        _ensure_one_batch(records, size)
    if base_offset:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the record batch begins with offset {base_offset}, not 0")
    if size > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record batch has {size} bytes, but max.message.bytes is {settings.max_message_bytes}",
        )
    validate(header, records)
    if not is_inspected:
        try:
            ensure_bounds(records, size, count, attributes & COMPRESSION_MASK)
        except MalformedMessage as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, error.reason) from error
    if not is_inspected and (
        settings.inspects_all
        or max_timestamp - now_ms > settings.latest_in_ms
        or max_timestamp < base_timestamp
        or max_timestamp < 0
        or attributes & TIMESTAMP_TYPE_MASK
        or (attributes & TRANSACTIONAL_MASK and producer_id < 0)
    ):
        inspected = inspect(records, header, settings.config, now_ms)
        if inspected is not records:
            records, header = inspected, read_header(inspected)
            size = header.batch_length + LOG_OVERHEAD
    if size > settings.segment_bytes:
        raise too_large_for_segment(size, settings.segment_bytes)
    return header, records


def too_large_for_segment(size: int, segment_bytes: int) -> KafkaError:
    """Return the error for a batch of ``size`` bytes, more than ``segment.bytes``."""
    return KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, f"the record batch has {size} bytes, but segment.bytes is {segment_bytes}")


def _refuse_malformed(records: Buffer, cause: MalformedMessage) -> KafkaError:
    """Return the error for a produce request's records that ``read_header`` cannot read."""
    if len(records) >= _SHORTEST_HEAD_BYTES:
        (batch_length,) = _LENGTH.unpack_from(records)
        if batch_length < _SHORTEST_MESSAGE_BYTES or batch_length + 12 <= len(records):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, cause.reason)
    return KafkaError(ErrorCode.INVALID_RECORD, "the request has no record batch; it must have exactly one")


def _ensure_one_batch(records: Buffer, size: int) -> None:
    """Raise unless ``records`` is one batch of ``size`` bytes and at most the beginning of another one.

    KafkaError: INVALID_RECORD (a Produce request of version 3 or later holds one batch a partition); CORRUPT_MESSAGE.
    """
    rest = len(records) - size
    if rest < 0:
        if records[_MAGIC_AT] > MAGIC:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"not a record batch: magic {records[_MAGIC_AT]}")
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the record batch has {size} bytes, but {len(records)} were sent")
    if rest < _SHORTEST_HEAD_BYTES:
        return
    (batch_length,) = _LENGTH.unpack_from(records, size)
    if batch_length < _SHORTEST_MESSAGE_BYTES:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the second record batch has length {batch_length}")
    if batch_length + 12 <= rest:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the request has several record batches; it must have exactly one")
