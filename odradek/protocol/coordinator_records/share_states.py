"""The state of share partitions on ``__share_group_state``: ShareSnapshot and ShareUpdate, byte for byte as Kafka 4.4.

    key    int16 kind (0 snapshot, 1 update) | string group id | uuid topic id | int32 partition
    value  int16 0 | compact fields | tagged fields

A snapshot is the whole state, and replaces what came before. An update is merged into the snapshot before it; its start offset
-1 leaves the start offset alone. A snapshot with a null value deletes the state.

The kinds are those of other records on other topics: a key has a meaning only together with its topic.
"""

from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from odradek.protocol.coordinator_records.fields import (
    ValueCodec,
    ensure_end,
    read_int16,
    read_int32,
    read_nullable_string,
    required,
    take,
)
from odradek.protocol.coordinator_records.tables import SHARE_STATE_VALUES

SNAPSHOT_KEY_VERSION: Final = 0
UPDATE_KEY_VERSION: Final = 1
_UUID_BYTES: Final = 16
_HEAD: Final = Struct(">hh")
_PARTITION: Final = Struct(">i")


class ShareSnapshotKey(NamedTuple):
    """Kind 0: a share partition."""

    group: str
    topic_id: UUID
    partition: int


class ShareUpdateKey(NamedTuple):
    """Kind 1: a share partition."""

    group: str
    topic_id: UUID
    partition: int


class StateBatch(NamedTuple):
    """The state of the records from ``first_offset`` to ``last_offset``, both included.

    ``delivery_state`` is 0 for AVAILABLE, 2 for ACKNOWLEDGED, 3 for ARCHIVING, 4 for ARCHIVED. ACQUIRED is never stored.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ShareSnapshotValue(NamedTuple):
    """The whole state. ``delivery_complete_count`` is -1 if it is unknown; times are in ms since the epoch.

    ``create_timestamp_ms`` is the time of the last snapshot that a write caused, ``write_timestamp_ms`` that of this snapshot.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp_ms: int
    write_timestamp_ms: int
    state_batches: tuple[StateBatch, ...]
    delivery_complete_count: int = -1


class ShareUpdateValue(NamedTuple):
    """A change of the state. ``snapshot_epoch`` is that of the snapshot before it."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]
    delivery_complete_count: int = -1


ShareStateKey: TypeAlias = ShareSnapshotKey | ShareUpdateKey
ShareStateValue: TypeAlias = ShareSnapshotValue | ShareUpdateValue


def encode_key(key: ShareStateKey) -> bytes:
    """Encode the key. Raises struct.error for a group id of more than 32,767 bytes."""
    kind = SNAPSHOT_KEY_VERSION if isinstance(key, ShareSnapshotKey) else UPDATE_KEY_VERSION
    group = key.group.encode()
    return b"".join((_HEAD.pack(kind, len(group)), group, key.topic_id.bytes, _PARTITION.pack(key.partition)))


def decode_key(data: bytes) -> ShareStateKey:
    """Decode the key in ``data``, whose version 0 or 1 the caller has checked. Raises MalformedMessage."""
    version, position = read_int16(data, 0)
    group, position = read_nullable_string(data, position)
    topic_id, position = take(data, position, _UUID_BYTES)
    partition, position = read_int32(data, position)
    ensure_end(data, position)
    key_class = ShareSnapshotKey if version == SNAPSHOT_KEY_VERSION else ShareUpdateKey
    return key_class(required(group), UUID(bytes=topic_id), partition)


def encode_value(value: ShareStateValue) -> bytes:
    """Encode the value. Raises struct.error for a number that does not fit its field."""
    return (_SNAPSHOT if isinstance(value, ShareSnapshotValue) else _UPDATE).encode(value)


def decode_value(key: ShareStateKey, data: bytes) -> ShareStateValue:
    """Decode the value of a record with this ``key``. Raises MalformedMessage."""
    value: ShareStateValue = (_SNAPSHOT if isinstance(key, ShareSnapshotKey) else _UPDATE).decode(data)
    return value


def _codec(kind: int, value_class: type[Any]) -> ValueCodec:
    return ValueCodec(SHARE_STATE_VALUES[kind], {value_class.__name__: value_class, "StateBatch": StateBatch})


_SNAPSHOT: Final = _codec(SNAPSHOT_KEY_VERSION, ShareSnapshotValue)
_UPDATE: Final = _codec(UPDATE_KEY_VERSION, ShareUpdateValue)
