"""A handwritten reader for OffsetCommit, the most frequent request after Produce. For the flexible versions, 8 to 10.

    group id           compact string
    generation         int32
    member id          compact string
    instance id        compact nullable string
    topics             array of
        topic          compact string, or from version 10 on the 16 bytes of its id
        partitions     array of
            index      int32
            offset     int64
            epoch      int32
            metadata   compact nullable string
            tags       after each partition, each topic and the request

A member commits repeatedly, with the same bytes before the first partition's index. They are cached with their decoded fields,
and a response without errors is not encoded again. Older versions use the compiled reader. Unknown tags are skipped (KIP-482).
Tests compare this with kio's writers.
"""

import struct
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import skip_tagged_fields
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.varint import LONGEST_STRING, read_uvarint, refuse_string

FIRST_FLEXIBLE: Final = 8
FIRST_BY_ID: Final = 10

_INT32: Final = Struct(">i").unpack_from
# Index, offset, leader epoch and the length of the metadata, plus one.
_OFFSET: Final = Struct(">iqiB").unpack_from
_OFFSET_SIZE: Final = 17
_EMPTY: Final = 1
_NO_RETENTION_TIME: Final = -1
_ONE_BYTE_VARINT: Final = 0x80
# Requests with longer names are not cached. The cache takes a few MiB at most.
_LONGEST_REMEMBERED: Final = 512
_MOST_REMEMBERED: Final = 4096
_ZERO_ID: Final = bytes(16)


class _Beginning(NamedTuple):
    """The decoded fields of a request up to its first topic's partitions, and the ``size`` of these bytes."""

    size: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topic_count: int
    name: str
    topic_id: UUID | None


# Named tuples are made without their constructors, in a third of the time: all fields are given, in order.
_new: Final = tuple.__new__
# Beginnings by their bytes, for versions by name and for versions by id. Then the size of the last beginning in a frame with the
# same length and the same header length.
_beginnings: tuple[dict[bytes, _Beginning], dict[bytes, _Beginning]] = ({}, {})
_sizes: dict[tuple[int, int], int] = {}


def read_offset_commit_request(frame: bytes, position: int, version: int) -> OffsetCommitRequest:
    """Read the request whose body begins at ``position``. Raises MalformedMessage. HOT."""
    try:
        return _read(frame, position, by_id=version >= FIRST_BY_ID)
    except (IndexError, struct.error):
        raise MalformedMessage("the request ends before its fields do") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a string is not UTF-8: {error}") from None


def _read(frame: bytes, position: int, *, by_id: bool) -> OffsetCommitRequest:
    size = _sizes.get((len(frame), position))
    beginning = None if size is None else _beginnings[by_id].get(frame[position : position + size])
    if beginning is None:
        beginning = _read_beginning(frame, position, by_id=by_id)
    size, group_id, generation_id, member_id, group_instance_id, topic_count, name, topic_id = beginning
    position += size
    topics = []
    while topic_count:
        partitions, position = _read_partitions(frame, position)
        topics.append(_new(OffsetCommitRequestTopic, (topic_id, partitions, name)))
        topic_count -= 1
        if topic_count:
            name, topic_id, position = _read_topic(frame, position, by_id=by_id)
    if frame[position]:
        skip_tagged_fields(frame, position)
    return _new(OffsetCommitRequest, (group_id, generation_id, member_id, group_instance_id, tuple(topics), _NO_RETENTION_TIME))


def _read_beginning(frame: bytes, start: int, *, by_id: bool) -> _Beginning:
    group_id, position = _read_string(frame, start, "the group id")
    (generation_id,) = _INT32(frame, position)
    member_id, position = _read_string(frame, position + 4, "the member id")
    group_instance_id, position = _read_nullable_string(frame, position)
    topic_count, position = _read_count(frame, position)
    name, topic_id = "", None
    if topic_count:
        name, topic_id, position = _read_topic(frame, position, by_id=by_id)
    beginning = _Beginning(position - start, group_id, generation_id, member_id, group_instance_id, topic_count, name, topic_id)
    if topic_count and beginning.size <= _LONGEST_REMEMBERED:
        remembered = _beginnings[by_id]
        if len(remembered) >= _MOST_REMEMBERED or len(_sizes) >= _MOST_REMEMBERED:
            remembered.clear()
            _sizes.clear()
        remembered[frame[start:position]] = beginning
        _sizes[len(frame), start] = beginning.size
    return beginning


def _read_topic(frame: bytes, position: int, *, by_id: bool) -> tuple[str, UUID | None, int]:
    """Return (name, id, position after them). Depending on the version, either name or id is set."""
    if by_id:
        return "", _topic_id(frame[position : position + 16]), position + 16
    name, position = _read_string(frame, position, "a topic's name")
    return name, None, position


def _read_partitions(frame: bytes, position: int) -> tuple[tuple[OffsetCommitRequestPartition, ...], int]:
    """Return the partitions of a topic, and the position after the topic's tags."""
    partitions = []
    count, position = _read_count(frame, position)
    for _ in range(count):
        index, offset, leader_epoch, length = _OFFSET(frame, position)
        metadata: str | None = ""
        if length == _EMPTY:
            position += _OFFSET_SIZE
        else:
            metadata, position = _read_nullable_string(frame, position + _OFFSET_SIZE - 1)
        position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
        partitions.append(_new(OffsetCommitRequestPartition, (index, offset, leader_epoch, metadata)))
    return tuple(partitions), position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)


def _read_count(frame: bytes, position: int) -> tuple[int, int]:
    """Read an array's count. Null is malformed; a count too large for the request fails at the request's end."""
    count, position = read_uvarint(frame, position)
    if count == 0:
        raise MalformedMessage("a required array is null")
    return count - 1, position


def _read_string(frame: bytes, position: int, what: str) -> tuple[str, int]:
    """Read a compact string, not null. Return it with the position after it. ``what`` names it in errors."""
    text, position = _read_nullable_string(frame, position)
    if text is None:
        raise MalformedMessage(f"{what} is null")
    return text, position


def _read_nullable_string(frame: bytes, position: int) -> tuple[str | None, int]:
    """Read a compact string or null. Return it with the position after it."""
    size = frame[position]
    position += 1
    if size >= _ONE_BYTE_VARINT:
        size, position = read_uvarint(frame, position - 1)
        if size > LONGEST_STRING + 1:
            refuse_string(size - 1)
    if size == 0:
        return None, position
    end = position + size - 1
    if end >= len(frame):
        # A string is never the last field: tags follow.
        raise MalformedMessage("a string goes past the end of the request")
    return str(frame[position:end], "utf-8"), end


# A client commits the same topics repeatedly, and making a UUID takes longer than the rest of a partition.
@lru_cache(maxsize=1024)
def _topic_id(raw: bytes) -> UUID | None:
    if len(raw) != len(_ZERO_ID):
        raise MalformedMessage("the request ends before its fields do")
    return None if raw == _ZERO_ID else UUID(bytes=raw)
