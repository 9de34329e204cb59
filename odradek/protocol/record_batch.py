"""The record batch, format v2, as bytes: its header read and checked, its head stamped, its records left alone.

This is all that the produce and fetch paths know of records; ``odradek.protocol.records`` opens a batch. Layout (KIP-98,
big-endian):

    0   base offset             int64     written by the broker
    8   batch length            int32     bytes from here on
    12  partition leader epoch  int32     written by the broker
    16  magic                   int8      2
    17  crc                     uint32    CRC-32C of everything from the attributes on
    21  attributes              int16     bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
    23  last offset delta       int32
    27  base timestamp          int64     ms since the epoch
    35  max timestamp           int64     ms since the epoch
    43  producer id             int64     -1 without one
    51  producer epoch          int16
    53  base sequence           int32
    57  record count            int32
    61  records                 compressed together where the attributes say so

The CRC leaves out what the broker writes, so stamping a batch does not touch it, except where the log's append time goes in.

Left out: message formats v0 and v1, which no longer travel; such a message is recognised by its magic, for the right refusal.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final, NamedTuple, TypeAlias

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_MASK: Final = 0x10
CONTROL_MASK: Final = 0x20
_LAST_COMPRESSION: Final = 4

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH: Final = struct.Struct(">8xi")
_pack_stamp: Final = struct.Struct(">qii").pack
# What ``stamped_head`` writes in front of the rest: base offset, batch length, leader epoch.
STAMPED_BYTES: Final = 16
_APPEND_TIME: Final = struct.Struct(">hiqq")
_CRC: Final = struct.Struct(">bI")
_pack_uint32: Final = struct.Struct(">I").pack
# The header's two parts: up to the CRC, and what that covers.
_pack_front: Final = struct.Struct(">qiibI").pack
_pack_covered: Final = struct.Struct(">hiqqqhii").pack
_MAGIC_POSITION: Final = 16
_CRC_POSITION: Final = 17
_CRC_START: Final = 21
_APPEND_TIME_END: Final = 43
# Up to this size a copy takes less time than a view.
_COPIED_BYTES: Final = 1024
# The smallest message of formats v0 and v1, after its offset and length.
_MIN_OLD_MESSAGE_BYTES: Final = 14


def _crc32c() -> Callable[[Buffer, int], int]:
    """``crc32c.crc32c`` out of its extension module alone.

    The package's own ``__init__`` pulls in argparse and importlib.metadata: tens of milliseconds of a start-up that has few.
    """
    module = sys.modules.get("crc32c")
    if module is None:
        package = PathFinder.find_spec("crc32c")
        spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is None or spec.loader is None:
            module = import_module("crc32c")
        else:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
    function: Callable[[Buffer, int], int] = module.crc32c
    return function


crc32c: Final = _crc32c()


class BatchHeader(NamedTuple):
    """The 61 bytes in front of a batch's records. Timestamps are ms since the epoch; ``batch_length`` is what the wire says."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, from its base offset on."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The last record's offset, or the offset it had before compaction."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing yet."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """CREATE_TIME or LOG_APPEND_TIME."""
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch takes part in a transaction."""
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        """Whether its record is a transaction marker, not a producer's."""
        return self.attributes & CONTROL_MASK != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer sent it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number: after 2^31-1 they go on at 0 (KIP-98). NO_SEQUENCE where there are none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


_unpack_header: Final = HEADER.unpack_from
_new_tuple: Final = tuple.__new__


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at ``position``, unpacked and not judged: ``validate`` does that.

    Of a v0 or v1 message only ``base_offset``, ``batch_length`` and ``magic`` mean anything.
    Raises MalformedMessage where there is no whole header, or a length that no batch can have.
    """
    try:
        fields = _unpack_header(buffer, position)
    except struct.error:
        return _read_short_header(buffer, position)
    if fields[1] < HEADER_SIZE - LOG_OVERHEAD and (fields[3] not in (0, 1) or fields[1] < _MIN_OLD_MESSAGE_BYTES):
        raise MalformedMessage(f"a record batch of length {fields[1]}")
    return _new_tuple(BatchHeader, fields)


def _read_short_header(buffer: Buffer, position: int) -> BatchHeader:
    """What ``read_header`` makes of fewer than 61 bytes: an old message's head if they are one."""
    available = len(buffer) - position
    if available <= _MAGIC_POSITION or buffer[position + _MAGIC_POSITION] not in (0, 1):
        raise MalformedMessage(f"a record batch header of {max(available, 0)} bytes")
    header = BatchHeader._make(HEADER.unpack(bytes(buffer[position:]).ljust(HEADER_SIZE, b"\0")))
    if header.batch_length < _MIN_OLD_MESSAGE_BYTES:
        raise MalformedMessage(f"a message of length {header.batch_length}")
    return header


def batch_crc(buffer: Buffer, position: int, size: int) -> int:
    """The CRC-32C of the batch of ``size`` bytes at ``position``, from its attributes on."""
    if type(buffer) is bytes and size <= _COPIED_BYTES:
        return crc32c(buffer[position + _CRC_START : position + size], 0)
    return crc32c(memoryview(buffer)[position + _CRC_START : position + size], 0)


def sealed(head: bytes, payload: Buffer) -> bytes:
    """The batch of a header, whose CRC is not in it yet, and of the records behind it."""
    covered = head[_CRC_START:]
    return b"".join((head[:_CRC_POSITION], _pack_uint32(crc32c(payload, crc32c(covered, 0))), covered, payload))


def assembled(
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    record_count: int,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    chunks: list[bytes],
) -> bytes:
    """A batch of the broker's own, its records all of one time and without sequence numbers.

    ``chunks`` are the records in pieces behind a first piece that is replaced.
    """
    chunks[0] = _pack_covered(
        attributes, record_count - 1, timestamp_ms, timestamp_ms, producer_id, producer_epoch, NO_SEQUENCE, record_count
    )
    covered = b"".join(chunks)
    length = len(covered) + _CRC_START - LOG_OVERHEAD
    return _pack_front(base_offset, length, leader_epoch, MAGIC, crc32c(covered, 0)) + covered


def ensure_intact(header: BatchHeader, buffer: Buffer, position: int = 0) -> None:
    """Raise unless the batch is all there and its bytes are those that were written.

    KafkaError: INVALID_RECORD for message formats v0 and v1, CORRUPT_MESSAGE for any other fault.
    """
    if header.magic != MAGIC:
        if header.magic in (0, 1):
            raise KafkaError(ErrorCode.INVALID_RECORD, f"message format v{header.magic}: only v2 is served")
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"magic {header.magic}")
    size = header.batch_length + LOG_OVERHEAD
    if position + size > len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes in {len(buffer) - position}")
    crc = batch_crc(buffer, position, size)
    if crc != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"CRC is {crc:#010x}, the batch says {header.crc:#010x}")


def validate(header: BatchHeader, buffer: Buffer, position: int = 0) -> None:
    """Raise unless the batch is intact and such as a producer may send: what can be told without opening it.

    A batch that was compacted has fewer records than offsets and does not pass: for a log's own batches use ``ensure_intact``.
    KafkaError: as ``ensure_intact``, and INVALID_RECORD for counts that contradict each other, a control batch, a producer id
    without a sequence, an unknown codec.
    """
    ensure_intact(header, buffer, position)
    if header.last_offset_delta + 1 != header.record_count or header.record_count < 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records in {header.last_offset_delta + 1} offsets",
        )
    if header.attributes & CONTROL_MASK:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a control batch is not a producer's to write")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"sequence {header.base_sequence} from producer id {header.producer_id}")
    if header.attributes & COMPRESSION_MASK > _LAST_COMPRESSION:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"compression {header.compression} is none that exists")


def stamped_head(batch_length: int, base_offset: int, leader_epoch: int) -> bytes:
    """The batch's first bytes as the log has them: to be written in front of the rest of the batch, which is not copied.

    head = stamped_head(header.batch_length, base_offset, leader_epoch)
    file.append([head, memoryview(buffer)[position + len(head) : position + header.size_bytes]])
    """
    return _pack_stamp(base_offset, batch_length, leader_epoch)


def stamped_head_append_time(
    header: BatchHeader, buffer: Buffer, position: int, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytes:
    """``stamped_head`` for ``message.timestamp.type=LogAppendTime``: timestamp type, max timestamp and CRC are rewritten too."""
    covered = _APPEND_TIME.pack(
        header.attributes | TIMESTAMP_TYPE_MASK, header.last_offset_delta, header.base_timestamp, timestamp_ms
    )[: _APPEND_TIME_END - _CRC_START]
    rest = memoryview(buffer)[position + _APPEND_TIME_END : position + header.size_bytes]
    crc = crc32c(rest, crc32c(covered, 0))
    return stamped_head(header.batch_length, base_offset, leader_epoch) + _CRC.pack(header.magic, crc) + covered


def iter_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch in ``buffer``, one behind the other, checked no further than is needed to find the next.

    Stops at a batch that is not all there, as a fetch's last one may be. Raises MalformedMessage at a length or magic that no
    batch has.
    """
    position = 0
    end = len(buffer)
    while end - position > _MAGIC_POSITION:
        (batch_length,) = _LENGTH.unpack_from(buffer, position)
        if batch_length < _MIN_OLD_MESSAGE_BYTES or buffer[position + _MAGIC_POSITION] > MAGIC:
            raise MalformedMessage(f"at {position}: length {batch_length}, magic {buffer[position + _MAGIC_POSITION]}")
        size = batch_length + LOG_OVERHEAD
        if end - position < size:
            return
        yield position, read_header(buffer, position)
        position += size
