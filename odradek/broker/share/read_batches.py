"""Finding the record batches in a slice of the log, without reading their records.

A share fetch needs the offsets of the batches, to know what it acquires. Their bytes go to the client straight from the file.
"""

from typing import Final

from odradek.broker.share.acquisition import ReadBatch
from odradek.protocol.control_records import ABORT, read_control_record
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, BatchHeader, read_header
from odradek.protocol.records import read_records
from odradek.storage.log.local_log import LogSlice

# Small batches are read together. Reading so much of a large one takes no longer than the call itself.
_BLOCK_BYTES: Final = 16 * 1024


def read_batches(found: LogSlice, last_offset: int) -> list[ReadBatch]:
    """Return the whole batches of a slice, up to the one that has ``last_offset``. KafkaError: KAFKA_STORAGE_ERROR."""
    try:
        return _walk(found, last_offset)
    except OSError as error:
        if found.on_error is not None:
            found.on_error(error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _walk(found: LogSlice, last_offset: int) -> list[ReadBatch]:
    batches: list[ReadBatch] = []
    block, block_position = b"", 0
    position = 0
    while found.length - position >= HEADER_SIZE:
        if position + HEADER_SIZE > block_position + len(block):
            block = found.file.pread(min(_BLOCK_BYTES, found.length - position), found.position + position)
            block_position = position
        header = read_header(block, position - block_position)
        if position + header.size_bytes > found.length:
            break
        is_abort = header.is_control and _is_abort(found, header, position)
        batches.append(
            ReadBatch(
                header.base_offset,
                header.last_offset,
                position,
                header.size_bytes,
                header.producer_id,
                header.is_transactional,
                is_abort,
            )
        )
        if header.last_offset >= last_offset:
            break
        position += header.size_bytes
    return batches


def _is_abort(found: LogSlice, header: BatchHeader, position: int) -> bool:
    batch = found.file.pread(header.size_bytes, found.position + position)
    return any(read_control_record(record)[0] == ABORT for record in read_records(batch, 0))


def slice_of(found: LogSlice, batches: list[ReadBatch], first_offset: int, last_offset: int) -> LogSlice:
    """Return the part of a slice that has the records from ``first_offset`` to ``last_offset``.

    If the log has none of them, because it was compacted, return the whole slice, as Kafka does. The response must have records,
    so that the member learns of the offsets that it acquired.
    """
    wanted = [batch for batch in batches if batch.last_offset >= first_offset and batch.base_offset <= last_offset]
    if not wanted:
        return found
    begin, end = wanted[0].position, wanted[-1].position + wanted[-1].size_bytes
    return (found.without(begin) if begin else found).first(end - begin)
