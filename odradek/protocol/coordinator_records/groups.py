"""A classic group on ``__consumer_offsets``: GroupMetadataKey version 2, GroupMetadataValue 0 to 4.

The fields of each version are in ``tables``. Like Kafka 4.4, odradek writes version 3.
"""

from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.coordinator_records.fields import ValueCodec, ensure_end, read_nullable_string, required
from odradek.protocol.coordinator_records.tables import VALUES

KEY_VERSION: Final = 2
_WRITTEN_VERSION: Final = 3

_INT16: Final = Struct(">h")


class GroupMetadataKey(NamedTuple):
    """The group id."""

    group: str


class MemberMetadata(NamedTuple):
    """A member of the generation. ``rebalance_timeout_ms`` is -1 in version 0 (Kafka then uses the session timeout).

    ``subscription`` is the member's metadata for the selected protocol, ``assignment`` the leader's assignment for it.
    """

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(NamedTuple):
    """A group after a rebalance. ``current_state_timestamp_ms`` is in ms since the epoch, -1 if unknown."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


def encode_key(key: GroupMetadataKey) -> bytes:
    """Encode version 2. Raises struct.error for a name of more than 32,767 bytes."""
    group = key.group.encode()
    return _INT16.pack(KEY_VERSION) + _INT16.pack(len(group)) + group


def decode_key(data: bytes) -> GroupMetadataKey:
    """Decode the key in ``data``, whose version 2 the caller has checked. Raises MalformedMessage."""
    group, position = read_nullable_string(data, 2)
    ensure_end(data, position)
    return GroupMetadataKey(required(group))


def encode_value(value: GroupMetadataValue) -> bytes:
    """Encode the value in version 3. Raises struct.error for a string of more than 32,767 bytes."""
    return _CODEC.encode(value, _WRITTEN_VERSION)


def decode_value(data: bytes) -> GroupMetadataValue:
    """Decode a value of any version from 0 to 4. Raises MalformedMessage."""
    value: GroupMetadataValue = _CODEC.decode(data)
    return value


_CODEC: Final = ValueCodec(VALUES[KEY_VERSION], {each.__name__: each for each in (GroupMetadataValue, MemberMetadata)})
