"""The record batch, format v2, as bytes: reads and checks its header, and stamps its first bytes. Records stay unread.

The produce and fetch paths need nothing else. ``odradek.protocol.records`` reads the records. Layout (KIP-98, big-endian):

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
    61  records                 compressed together if the attributes say so

The CRC does not cover the fields that the broker writes, so stamping a batch keeps its CRC. A log append time changes it.

Logs may also have messages of formats v0 and v1, which producers may no longer send (``odradek.protocol.legacy_records`` reads
their content). ``read_header`` describes each as a batch of its own, so that all code that goes from header to header supports
all three formats:

    0   offset      int64     for a compressed message, the offset of the last message in it
    8   size        int32     bytes from here on
    12  crc         uint32    CRC-32 of everything from the magic on
    16  magic       int8      0 or 1
    17  attributes  int8      bits 0-2 compression, 3 timestamp type (v1)
    18  timestamp   int64     v1 only, ms since the epoch
    ..  key, value  int32 length, -1 for null; then bytes
"""

import struct
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

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
# The size of ``stamped_head``: base offset, batch length, leader epoch.
STAMPED_BYTES: Final = 16
_APPEND_TIME: Final = struct.Struct(">hiqq")
_CRC: Final = struct.Struct(">bI")
_pack_uint32: Final = struct.Struct(">I").pack
# The header's two parts: up to the CRC, and the part that the CRC covers.
_pack_front: Final = struct.Struct(">qiibI").pack
_pack_covered: Final = struct.Struct(">hiqqqhii").pack
_MAGIC_POSITION: Final = 16
_CRC_POSITION: Final = 17
_CRC_START: Final = 21
_APPEND_TIME_END: Final = 43
# Up to this size, a copy is faster than a view.
_COPIED_BYTES: Final = 4096
# The smallest message of formats v0 and v1, after its offset and size.
_MIN_OLD_MESSAGE_BYTES: Final = 14
# The smallest v0 message as a whole. The last field is the timestamp in v1, and the lengths of key and value in v0.
_OLD_HEADER: Final = struct.Struct(">qiIbBq")


def _crc32c() -> Callable[[Buffer, int], int]:
    """Return ``crc32c.crc32c``, loaded from its extension module only.

    The package's own ``__init__`` imports argparse and importlib.metadata, which takes tens of milliseconds of start-up.
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
    """The 61 bytes before a batch's records. Timestamps are in ms since the epoch; ``batch_length`` is the field on the wire.

    A message of format v0 or v1 has no leader epoch and no producer. A compressed one does not show the number of its messages,
    nor their first offset. It counts as one record with the last one's offset.
    """

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
        """Return the size of the whole batch, including base offset and length."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Return the last record's offset. In a compacted batch, this is the last offset before compaction."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Return the offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """Return the codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 are undefined."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> int:
        """Return CREATE_TIME or LOG_APPEND_TIME."""
        return LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Return whether the batch takes part in a transaction."""
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        """Return whether the batch is a transaction marker."""
        return self.attributes & CONTROL_MASK != 0

    @property
    def has_producer_id(self) -> bool:
        """Return whether an idempotent or transactional producer sent it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Return the last record's sequence number, or NO_SEQUENCE. After 2^31-1 the numbers continue at 0 (KIP-98)."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


_unpack_header: Final = HEADER.unpack_from
_new_tuple: Final = tuple.__new__


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at ``position``, of a batch or of a message of format v0 or v1, unpacked but not checked.

    ``validate`` and ``ensure_intact`` check it. Raises MalformedMessage if the header is incomplete or the length impossible.
    """
    try:
        fields = _unpack_header(buffer, position)
    except struct.error:
        return _read_message_header(buffer, position)
    if fields[3] != MAGIC or fields[1] < HEADER_SIZE - LOG_OVERHEAD:
        if fields[3] in (0, 1):
            return _read_message_header(buffer, position)
        if fields[1] < HEADER_SIZE - LOG_OVERHEAD:
            raise MalformedMessage(f"a record batch has the invalid length {fields[1]}")
    return _new_tuple(BatchHeader, fields)


def _read_message_header(buffer: Buffer, position: int) -> BatchHeader:
    """Return the header of a message of format v0 or v1."""
    available = len(buffer) - position
    if available < _OLD_HEADER.size or buffer[position + _MAGIC_POSITION] not in (0, 1):
        raise MalformedMessage(f"a record batch header has only {max(available, 0)} bytes")
    offset, size, crc, magic, attributes, timestamp = _OLD_HEADER.unpack_from(buffer, position)
    if size < _MIN_OLD_MESSAGE_BYTES:
        raise MalformedMessage(f"a message has the invalid length {size}")
    if not magic:
        attributes &= COMPRESSION_MASK
        timestamp = -1
    attributes &= COMPRESSION_MASK | TIMESTAMP_TYPE_MASK
    return BatchHeader(offset, size, -1, magic, crc, attributes, 0, timestamp, timestamp, NO_PRODUCER_ID, -1, NO_SEQUENCE, 1)


def batch_crc(buffer: Buffer, position: int, size: int) -> int:
    """Return the CRC-32C of the batch of ``size`` bytes at ``position``, from its attributes on."""
    if type(buffer) is bytes and size <= _COPIED_BYTES:
        return crc32c(buffer[position + _CRC_START : position + size], 0)
    return crc32c(memoryview(buffer)[position + _CRC_START : position + size], 0)


def sealed(head: bytes, payload: Buffer) -> bytes:
    """Return the batch of a header without CRC and its records, with the CRC filled in."""
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
    """Build one of the broker's own batches, with one timestamp for all records and without sequence numbers.

    ``chunks`` are the parts of the records. The first one is replaced by the header.
    """
    chunks[0] = _pack_covered(
        attributes, record_count - 1, timestamp_ms, timestamp_ms, producer_id, producer_epoch, NO_SEQUENCE, record_count
    )
    covered = b"".join(chunks)
    length = len(covered) + _CRC_START - LOG_OVERHEAD
    return _pack_front(base_offset, length, leader_epoch, MAGIC, crc32c(covered, 0)) + covered


def ensure_intact(header: BatchHeader, buffer: Buffer, position: int = 0) -> None:
    """Raise unless a batch, or a message of format v0 or v1, is complete and its CRC is right. KafkaError: CORRUPT_MESSAGE."""
    size = header.batch_length + LOG_OVERHEAD
    if position + size > len(buffer):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch has {size} bytes, but {len(buffer) - position} are left")
    if header.magic == MAGIC:
        crc = batch_crc(buffer, position, size)
    elif header.magic in (0, 1):
        crc = crc32(memoryview(buffer)[position + _MAGIC_POSITION : position + size])
    else:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"unsupported magic {header.magic}")
    if crc != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"CRC is {crc:#010x}, but the batch has {header.crc:#010x}")


def validate(header: BatchHeader, buffer: Buffer, position: int = 0) -> None:
    """Raise unless the batch is intact and valid for a producer to send, as far as the header shows.

    A compacted batch has fewer records than offsets and is invalid here: for a log's own batches use ``ensure_intact``.
    KafkaError: as ``ensure_intact``, and INVALID_RECORD for message formats v0 and v1, contradictory counts, a control batch, a
    producer id without a sequence, an unknown codec.
    """
    _, length, _, magic, crc, attributes, last_offset_delta, _, _, producer_id, _, base_sequence, count = header
    size = length + LOG_OVERHEAD
    if magic == MAGIC and position + size <= len(buffer) and batch_crc(buffer, position, size) == crc:
        if (
            last_offset_delta + 1 == count > 0
            and not attributes & CONTROL_MASK
            and attributes & COMPRESSION_MASK <= _LAST_COMPRESSION
            and (producer_id < 0 or base_sequence >= 0)
        ):
            return
    elif magic not in (0, 1):
        ensure_intact(header, buffer, position)
    raise KafkaError(ErrorCode.INVALID_RECORD, _fault(header))


def _fault(header: BatchHeader) -> str:
    """Return the reason to refuse an intact batch, or a message of format v0 or v1; or ""."""
    if header.magic != MAGIC:
        return f"message format v{header.magic}: a producer must send v2"
    if header.last_offset_delta + 1 != header.record_count or header.record_count < 1:
        return f"{header.record_count} records have {header.last_offset_delta + 1} offsets"
    if header.attributes & CONTROL_MASK:
        return "a producer cannot write a control batch"
    if header.attributes & COMPRESSION_MASK > _LAST_COMPRESSION:
        return f"compression {header.compression} does not exist"
    return f"invalid sequence {header.base_sequence} from producer id {header.producer_id}"


def stamped_head(batch_length: int, base_offset: int, leader_epoch: int) -> bytes:
    """Return the first bytes of the batch as stored in the log.

    They are written before the rest of the batch, which is not copied:

        head = stamped_head(header.batch_length, base_offset, leader_epoch)
        file.append([head, memoryview(buffer)[position + len(head) : position + header.size_bytes]])
    """
    return _pack_stamp(base_offset, batch_length, leader_epoch)


def stamped_head_append_time(
    header: BatchHeader, buffer: Buffer, position: int, base_offset: int, leader_epoch: int, timestamp_ms: int
) -> bytes:
    """Return ``stamped_head`` for LogAppendTime: timestamp type, max timestamp and CRC are rewritten, too."""
    covered = _APPEND_TIME.pack(
        header.attributes | TIMESTAMP_TYPE_MASK, header.last_offset_delta, header.base_timestamp, timestamp_ms
    )[: _APPEND_TIME_END - _CRC_START]
    rest = memoryview(buffer)[position + _APPEND_TIME_END : position + header.size_bytes]
    crc = crc32c(rest, crc32c(covered, 0))
    return stamped_head(header.batch_length, base_offset, leader_epoch) + _CRC.pack(header.magic, crc) + covered


def iter_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch in ``buffer``. A batch is checked only as far as needed to find the next one.

    Stops at an incomplete batch: a fetch's last batch may be one. Raises MalformedMessage at an impossible length or magic.
    """
    position = 0
    end = len(buffer)
    while end - position > _MAGIC_POSITION:
        (batch_length,) = _LENGTH.unpack_from(buffer, position)
        if batch_length < _MIN_OLD_MESSAGE_BYTES or buffer[position + _MAGIC_POSITION] > MAGIC:
            raise MalformedMessage(
                f"invalid message at position {position}: length {batch_length}, magic {buffer[position + _MAGIC_POSITION]}"
            )
        size = batch_length + LOG_OVERHEAD
        if end - position < size:
            return
        yield position, read_header(buffer, position)
        position += size
