"""Committed offsets on ``__consumer_offsets``: OffsetCommitKey versions 0 and 1, OffsetCommitValue 0 to 4.

Like Kafka 4.4, odradek writes key version 1 and value version 4. An offset with an expire timestamp, which only OffsetCommit
requests up to version 4 can have, gets value version 1. Every commit is encoded here, and decoded again when the log is loaded,
so the common forms are packed and unpacked in one call. The fields of each version are in ``tables``.
"""

import struct
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple
from uuid import UUID

from odradek.protocol.coordinator_records.fields import ValueCodec
from odradek.protocol.coordinator_records.tables import VALUES
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.varint import uvarint

KEY_VERSION: Final = 1
_EXPIRING_VERSION: Final = 1
_NEWEST_VERSION: Final = 4
_TOPIC_ID_TAG: Final = 0
_NO_TOPIC_ID: Final = UUID(int=0)

_KEY_HEAD: Final = Struct(">hh")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_VALUE_HEAD: Final = Struct(">hqi")
# Version 4 without metadata, without and with a topic id: the tagged field is count 1, tag 0, size 16.
_PLAIN: Final = Struct(">hqiBqB")
_WITH_TOPIC_ID: Final = Struct(">hqiBqBBB16s")
_pack_int32: Final = _INT32.pack
# The most characters of group and topic in a cached key. The cache takes a few MiB.
_LONGEST_REMEMBERED: Final = 512
_pack_plain: Final = _PLAIN.pack
_pack_with_topic_id: Final = _WITH_TOPIC_ID.pack
_EMPTY_COMPACT_STRING: Final = 1
_ONE_TOPIC_ID_FIELD: Final = bytes((1, _TOPIC_ID_TAG, 16))


# Named tuples, not dataclasses: each committed or loaded offset makes, hashes and compares some.
class OffsetCommitKey(NamedTuple):
    """A group's offset for one partition of a topic."""

    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
    """A committed offset. ``leader_epoch`` is -1 if the client gave none; timestamps are in ms since the epoch, -1 for none."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    topic_id: UUID | None = None


def encode_key(key: OffsetCommitKey) -> bytes:
    """Encode version 1. Raises struct.error for a name of more than 32,767 bytes."""
    group, topic, partition = key
    if len(group) + len(topic) > _LONGEST_REMEMBERED:
        return _encode_names(group, topic) + _pack_int32(partition)
    return _remember_names(group, topic) + _pack_int32(partition)


# Groups commit repeatedly, and to few topics.
@lru_cache(maxsize=4096)
def _remember_names(group: str, topic: str) -> bytes:
    return _encode_names(group, topic)


def _encode_names(group: str, topic: str) -> bytes:
    """Encode a key without its partition."""
    encoded_group = group.encode()
    encoded_topic = topic.encode()
    head = _KEY_HEAD.pack(KEY_VERSION, len(encoded_group))
    return head + encoded_group + _INT16.pack(len(encoded_topic)) + encoded_topic


def decode_key(data: bytes) -> OffsetCommitKey:
    """Decode the key in ``data``, whose version, 0 or 1, the caller has checked. Raises MalformedMessage."""
    try:
        group_end = 4 + _INT16.unpack_from(data, 2)[0]
        topic_start = group_end + 2
        topic_end = topic_start + _INT16.unpack_from(data, group_end)[0]
        if not 4 <= group_end < topic_start <= topic_end == len(data) - 4:
            raise MalformedMessage(f"an offset's key has {len(data)} bytes, but its strings end at {group_end} and {topic_end}")
        return OffsetCommitKey(
            data[4:group_end].decode(), data[topic_start:topic_end].decode(), _INT32.unpack_from(data, topic_end)[0]
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"an offset's key: {error}") from None


def encode_value(value: OffsetCommitValue) -> bytes:
    """Encode version 4, or 1 for an offset with an expire timestamp. Raises struct.error if a value does not fit its field."""
    offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id = value
    if expire_timestamp_ms >= 0:
        return _CODEC.encode(value, _EXPIRING_VERSION)
    if metadata:
        text = metadata.encode()
        head = _VALUE_HEAD.pack(_NEWEST_VERSION, offset, leader_epoch) + uvarint(len(text) + 1) + text
        tagged = b"\0" if topic_id is None else _ONE_TOPIC_ID_FIELD + topic_id.bytes
        return head + _INT64.pack(commit_timestamp_ms) + tagged
    if topic_id is None:
        return _pack_plain(_NEWEST_VERSION, offset, leader_epoch, _EMPTY_COMPACT_STRING, commit_timestamp_ms, 0)
    return _pack_with_topic_id(
        _NEWEST_VERSION,
        offset,
        leader_epoch,
        _EMPTY_COMPACT_STRING,
        commit_timestamp_ms,
        *_ONE_TOPIC_ID_FIELD,
        topic_id.bytes,
    )


def decode_value(data: bytes) -> OffsetCommitValue:
    """Decode any version from 0 to 4. Raises MalformedMessage."""
    size = len(data)
    if size == _PLAIN.size:
        version, offset, leader_epoch, metadata_size, commit_timestamp_ms, tags = _PLAIN.unpack(data)
        if version == _NEWEST_VERSION and metadata_size == _EMPTY_COMPACT_STRING and tags == 0:
            return OffsetCommitValue(offset, leader_epoch, "", commit_timestamp_ms)
    elif size == _WITH_TOPIC_ID.size:
        fields = _WITH_TOPIC_ID.unpack(data)
        if fields[0] == _NEWEST_VERSION and fields[3] == _EMPTY_COMPACT_STRING and data[23:26] == _ONE_TOPIC_ID_FIELD:
            return OffsetCommitValue(fields[1], fields[2], "", fields[4], -1, _topic_id(fields[8]))
    value: OffsetCommitValue = _CODEC.decode(data)
    return value._replace(topic_id=None) if value.topic_id == _NO_TOPIC_ID else value


# A log repeats few topics many times, and making a UUID takes longer than the rest of the value.
@lru_cache(maxsize=1024)
def _topic_id(raw: bytes) -> UUID | None:
    topic_id = UUID(bytes=raw)
    return None if topic_id == _NO_TOPIC_ID else topic_id


_CODEC: Final = ValueCodec(VALUES[KEY_VERSION], {"OffsetCommitValue": OffsetCommitValue})
