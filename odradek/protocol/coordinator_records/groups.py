"""A classic group on ``__consumer_offsets``: GroupMetadataKey version 2, GroupMetadataValue 0 to 4.

    key      int16 version | string group
    value    int16 version | string protocol type | int32 generation | nullable string protocol | nullable string leader |
             int64 current state timestamp (2+) | array of members
    member   string member id | nullable string group instance id (3+) | string client id | string client host |
             int32 rebalance timeout (1+) | int32 session timeout | bytes subscription | bytes assignment

In version 4 strings, bytes and arrays are compact, and each struct ends with its tagged fields, none of which is defined. Like
Kafka 4.3, odradek writes version 3.

Source: group-coordinator/src/main/resources/common/message/GroupMetadata{Key,Value}.json of Apache Kafka.
"""

from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.coordinator_records.fields import (
    ensure_end,
    read_bytes,
    read_compact_bytes,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_compact_string,
    read_nullable_string,
    read_tagged_fields,
    required,
)
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.varint import read_uvarint

KEY_VERSION: Final = 2
_WRITTEN_VERSION: Final = 3
_NEWEST_VERSION: Final = 4
_NULL_STRING: Final = b"\xff\xff"

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_TIMEOUTS: Final = Struct(">ii")
_STATE: Final = Struct(">qi")


class GroupMetadataKey(NamedTuple):
    """The group id."""

    group: str


class MemberMetadata(NamedTuple):
    """A member of the generation. ``rebalance_timeout_ms`` is -1 in version 0 (Kafka then uses the session timeout).

    ``subscription`` is the member's metadata for the selected protocol, ``assignment`` the leader's assignment for it.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(NamedTuple):
    """A group after a rebalance. ``current_state_timestamp_ms`` is in ms since the epoch, -1 if unknown."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


def encode_key(key: GroupMetadataKey) -> bytes:
    """Version 2. Raises struct.error for a name of more than 32,767 bytes."""
    return _INT16.pack(KEY_VERSION) + _string(key.group)


def decode_key(data: bytes) -> GroupMetadataKey:
    """The key in ``data``; the caller has checked that its version is 2. Raises MalformedMessage."""
    group, position = read_nullable_string(data, 2)
    ensure_end(data, position)
    return GroupMetadataKey(required(group))


def encode_value(value: GroupMetadataValue) -> bytes:
    """The value in version 3. Raises struct.error for a string of more than 32,767 bytes."""
    chunks = [
        _INT16.pack(_WRITTEN_VERSION),
        _string(value.protocol_type),
        _INT32.pack(value.generation),
        _nullable_string(value.protocol),
        _nullable_string(value.leader),
        _STATE.pack(value.current_state_timestamp_ms, len(value.members)),
    ]
    for member in value.members:
        chunks += (
            _string(member.member_id),
            _nullable_string(member.group_instance_id),
            _string(member.client_id),
            _string(member.client_host),
            _TIMEOUTS.pack(member.rebalance_timeout_ms, member.session_timeout_ms),
            _INT32.pack(len(member.subscription)),
            member.subscription,
            _INT32.pack(len(member.assignment)),
            member.assignment,
        )
    return b"".join(chunks)


def decode_value(data: bytes) -> GroupMetadataValue:
    """A value of any version from 0 to 4. Raises MalformedMessage."""
    version, position = read_int16(data, 0)
    if not 0 <= version <= _NEWEST_VERSION:
        raise MalformedMessage(f"a group's value of version {version}")
    is_flexible = version >= 4
    read_string = read_nullable_compact_string if is_flexible else read_nullable_string
    protocol_type, position = read_string(data, position)
    generation, position = read_int32(data, position)
    protocol, position = read_string(data, position)
    leader, position = read_string(data, position)
    current_state_timestamp_ms = -1
    if version >= 2:
        current_state_timestamp_ms, position = read_int64(data, position)
    count, position = _read_count(data, position, is_flexible=is_flexible)
    members = []
    for _ in range(count):
        member, position = _read_member(data, position, version)
        members.append(member)
    if is_flexible:
        _, position = read_tagged_fields(data, position)
    ensure_end(data, position)
    return GroupMetadataValue(required(protocol_type), generation, protocol, leader, current_state_timestamp_ms, tuple(members))


def _read_count(data: bytes, position: int, *, is_flexible: bool) -> tuple[int, int]:
    if is_flexible:
        raw, position = read_uvarint(data, position)
        count = raw - 1
    else:
        count, position = read_int32(data, position)
    # A member takes more than one byte, so a larger count is malformed. It is rejected before memory is allocated.
    if not 0 <= count <= len(data) - position:
        raise MalformedMessage(f"{count} members in {len(data) - position} bytes")
    return count, position


def _read_member(data: bytes, position: int, version: int) -> tuple[MemberMetadata, int]:
    is_flexible = version >= 4
    read_string = read_nullable_compact_string if is_flexible else read_nullable_string
    read_data = read_compact_bytes if is_flexible else read_bytes
    group_instance_id = None
    rebalance_timeout_ms = -1
    member_id, position = read_string(data, position)
    if version >= 3:
        group_instance_id, position = read_string(data, position)
    client_id, position = read_string(data, position)
    client_host, position = read_string(data, position)
    if version >= 1:
        rebalance_timeout_ms, position = read_int32(data, position)
    session_timeout_ms, position = read_int32(data, position)
    subscription, position = read_data(data, position)
    assignment, position = read_data(data, position)
    if is_flexible:
        _, position = read_tagged_fields(data, position)
    member = MemberMetadata(
        required(member_id),
        group_instance_id,
        required(client_id),
        required(client_host),
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
    return member, position


def _string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def _nullable_string(text: str | None) -> bytes:
    return _NULL_STRING if text is None else _string(text)
