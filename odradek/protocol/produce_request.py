"""A handwritten reader for Produce requests, which does not copy their batches.

    transactional id   nullable string          compact from version 9 on
    acks               int16
    timeout            int32, ms
    topics             array of
        topic          string, or from version 13 on the 16 bytes of its id
        partitions     array of
            index      int32
            records    nullable bytes           compact from version 9 on
            tags                                from version 9 on, and after each topic and the request

A frame of a megabyte is almost only batches. So ``records`` is a slice of the frame. If the frame is a view, so is the slice, and
it is valid as long as the frame. Unknown tags are skipped (KIP-482). Tests compare this with kio's writers.
"""

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import skip_tagged_fields
from odradek.protocol.varint import LONGEST_STRING, read_uvarint, refuse_string

Buffer: TypeAlias = bytes | memoryview

# Named tuples are made without their constructors, in a third of the time: all fields are given, in their order.
_new: Final = tuple.__new__
_INT16: Final = Struct(">h").unpack_from
_INT32: Final = Struct(">i").unpack_from
_ACKS_AND_TIMEOUT: Final = Struct(">hi").unpack_from
# In a flexible request: acks, timeout, the number of topics.
_FRONT: Final = Struct(">hiB").unpack_from
_FRONT_BYTES: Final = 7
# In a topic: the number of partitions, the first one's index, and the first byte of its records' length.
_PARTITION: Final = Struct(">BiB").unpack_from
_PARTITION_BYTES: Final = 6
# The encoded length of an array of one.
_ONE: Final = 2
# The tags of the partition, of the topic, and of the request.
_NO_TAGS: Final = b"\0\0\0"
FIRST_FLEXIBLE: Final = 9
# The most topics and partitions in a request. A producer sends one batch per partition, and a broker has some thousands of
# partitions.
_MOST_ITEMS: Final = 20_000
FIRST_BY_ID: Final = 13

# A topic (its name, or the 16 bytes of its id) and its partitions: index and records.
ProduceTopic: TypeAlias = tuple[str | bytes, Sequence[tuple[int, Buffer | None]]]


class ProduceRequest(NamedTuple):
    """A Produce request of any served version. From version 13 on, ``topics`` have ids in place of names."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topics: Sequence[ProduceTopic] = ()


def read_produce_request(frame: Buffer, position: int, version: int) -> ProduceRequest:
    """Read the request whose body begins at ``position``. Raises MalformedMessage."""
    try:
        if version < FIRST_FLEXIBLE:
            return _read_legacy(frame, position)
        return _read_flexible(frame, position, version >= FIRST_BY_ID)
    except (IndexError, struct.error):
        raise MalformedMessage("the Produce request ends before its fields do") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"the Produce request has a name that is not UTF-8: {error}") from None


def read_one_batch(frame: bytes, position: int, by_id: bool) -> ProduceRequest | None:
    """Read a request of one batch, with header tags at ``position``: 0.5 us, not 0.7. Return None for any other.

    Raises IndexError, struct.error or UnicodeDecodeError for a malformed request.
    """
    size = frame[position + 1]
    if frame[position] or size > 0x7F:
        return None
    position += 1
    transactional_id = frame[position + 1 : position + size].decode() if size else None
    position += size or 1
    acks, timeout_ms, topics = _FRONT(frame, position)
    if topics != _ONE:
        return None
    position += _FRONT_BYTES
    topic: str | bytes
    if by_id:
        topic = frame[position : position + 16]
        position += 16
    else:
        size = frame[position]
        if not 0 < size <= 0x7F:
            return None
        topic = frame[position + 1 : position + size].decode()
        position += size
    if position + _PARTITION_BYTES >= len(frame):
        return None
    partitions, index, size = _PARTITION(frame, position)
    position += _PARTITION_BYTES
    if size > 0x7F:
        size = size & 0x7F | frame[position] << 7
        position += 1
    end = position + size - 1
    if partitions != _ONE or not 0 < size <= 0x3FFF or frame[end:] != _NO_TAGS:
        return None
    return _new(ProduceRequest, (transactional_id, acks, timeout_ms, ((topic, ((index, frame[position:end]),)),)))


def _read_flexible(frame: Buffer, position: int, by_id: bool) -> ProduceRequest:
    transactional_id, position = _compact_string(frame, position)
    acks, timeout_ms = _ACKS_AND_TIMEOUT(frame, position)
    # Lengths of one byte, as nearly all are, are read in place: calls for them take a fifth of the reader's time.
    position += 7
    count = frame[position - 1]
    if count > 0x7F:
        count, position = read_uvarint(frame, position - 1)
    topics: list[ProduceTopic] = []
    end = len(frame)
    left = _MOST_ITEMS
    for _ in range(_count(count - 1)):
        topic: str | bytes | None
        if by_id:
            topic = bytes(frame[position : position + 16])
            position += 16
        else:
            topic, position = _compact_string(frame, position)
        if topic is None:
            raise MalformedMessage("the Produce request has a topic without a name")
        count = frame[position]
        position += 1
        if count > 0x7F:
            count, position = read_uvarint(frame, position - 1)
        partitions: list[tuple[int, Buffer | None]] = []
        left -= count
        if left < 0:
            raise _too_many()
        for _ in range(_count(count - 1)):
            (index,) = _INT32(frame, position)
            position += 5
            size = frame[position - 1]
            if size > 0x7F:
                size, position = read_uvarint(frame, position - 1)
            if size:
                start = position
                position += size - 1
                if position >= end:
                    raise MalformedMessage("the Produce request has records that go past its end")
                partitions.append((index, frame[start:position]))
            else:
                partitions.append((index, None))
            position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
        topics.append((topic, tuple(partitions)))
        position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    if frame[position]:
        skip_tagged_fields(frame, position)
    return _new(ProduceRequest, (transactional_id, acks, timeout_ms, tuple(topics)))


def _read_legacy(frame: Buffer, position: int) -> ProduceRequest:
    transactional_id, position = _string(frame, position)
    acks, timeout_ms = _ACKS_AND_TIMEOUT(frame, position)
    (count,) = _INT32(frame, position + 6)
    position += 10
    topics: list[ProduceTopic] = []
    left = _MOST_ITEMS
    for _ in range(_count(count)):
        topic, position = _string(frame, position)
        if topic is None:
            raise MalformedMessage("the Produce request has a topic without a name")
        (count,) = _INT32(frame, position)
        position += 4
        left -= count + 1
        if left < 0:
            raise _too_many()
        partitions: list[tuple[int, Buffer | None]] = []
        for _ in range(_count(count)):
            (index,) = _INT32(frame, position)
            (size,) = _INT32(frame, position + 4)
            position += 8
            if size < 0:
                partitions.append((index, None))
                continue
            start = position
            position += size
            if position > len(frame):
                raise MalformedMessage("the Produce request has records that go past its end")
            partitions.append((index, frame[start:position]))
        topics.append((topic, tuple(partitions)))
    return _new(ProduceRequest, (transactional_id, acks, timeout_ms, tuple(topics)))


def _too_many() -> MalformedMessage:
    return MalformedMessage(f"the Produce request has more than {_MOST_ITEMS} topics and partitions")


def _count(count: int) -> int:
    """Return a count. Null is malformed; a count too large for its request fails at the request's end."""
    if count < 0:
        raise MalformedMessage("the Produce request has null for an array")
    return count


def _compact_string(frame: Buffer, position: int) -> tuple[str | None, int]:
    size = frame[position]
    position += 1
    if size == 0:
        return None, position
    if size > 0x7F:
        size, position = read_uvarint(frame, position - 1)
        if size > LONGEST_STRING + 1:
            refuse_string(size - 1)
    return _text(frame, position, position + size - 1)


def _string(frame: Buffer, position: int) -> tuple[str | None, int]:
    (size,) = _INT16(frame, position)
    position += 2
    if size < 0:
        return None, position
    return _text(frame, position, position + size)


def _text(frame: Buffer, start: int, end: int) -> tuple[str, int]:
    if end > len(frame):
        raise MalformedMessage("the Produce request has a string that goes past its end")
    return str(frame[start:end], "utf-8"), end
