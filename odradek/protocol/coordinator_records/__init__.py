"""The coordinators' records on their three topics, byte for byte in Kafka's schemas.

A key begins with an int16, the kind of record. On ``__consumer_offsets``, 0 and 1 are offsets, 2 is a classic group. On
``__transaction_state``, 0 is a transactional id. On ``__share_group_state``, 0 and 1 are share partitions. A value begins with an
int16, its version. The classes are plain values, the same for every version. The ``encode_`` functions write the version that
Kafka 4.4 writes. A record with a null value is a tombstone: it deletes the state of its key.

``decode_group_key`` also reads the records of consumer, share and streams groups as values. ``decode_key`` returns
``UnknownKey`` for all keys from 3 up; ``newer_groups`` reads those for display.
"""

from struct import Struct
from typing import NamedTuple, TypeAlias

from odradek.protocol.coordinator_records import (
    consumer_groups,
    groups,
    offsets,
    share_groups,
    share_states,
    streams_groups,
    transactions,
)
from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupKey, ConsumerGroupValue
from odradek.protocol.coordinator_records.groups import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from odradek.protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.coordinator_records.record_kinds import RecordKinds
from odradek.protocol.coordinator_records.share_groups import ShareGroupKey, ShareGroupValue
from odradek.protocol.coordinator_records.share_states import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateKey,
    ShareStateValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from odradek.protocol.coordinator_records.streams_groups import StreamsGroupKey, StreamsGroupValue
from odradek.protocol.coordinator_records.transactions import TransactionLogKey, TransactionLogValue
from odradek.protocol.errors import MalformedMessage

__all__ = [
    "ConsumerGroupKey",
    "ConsumerGroupValue",
    "CoordinatorKey",
    "CoordinatorValue",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "MalformedMessage",
    "MemberMetadata",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "ShareGroupKey",
    "ShareGroupValue",
    "ShareSnapshotKey",
    "ShareSnapshotValue",
    "ShareUpdateKey",
    "ShareUpdateValue",
    "StreamsGroupKey",
    "StreamsGroupValue",
    "TransactionLogKey",
    "TransactionLogValue",
    "UnknownKey",
    "decode_group_key",
    "decode_key",
    "decode_share_state_key",
    "decode_transaction_key",
    "decode_value",
    "encode_key",
    "encode_value",
]

CoordinatorKey: TypeAlias = (
    OffsetCommitKey | GroupMetadataKey | TransactionLogKey | ConsumerGroupKey | ShareGroupKey | StreamsGroupKey | ShareStateKey
)
CoordinatorValue: TypeAlias = (
    OffsetCommitValue
    | GroupMetadataValue
    | TransactionLogValue
    | ConsumerGroupValue
    | ShareGroupValue
    | StreamsGroupValue
    | ShareStateValue
)

_INT16 = Struct(">h")
_NEWER = RecordKinds(
    consumer_groups.KEYS | share_groups.KEYS | streams_groups.KEYS,
    consumer_groups.CLASSES | share_groups.CLASSES | streams_groups.CLASSES,
)


class UnknownKey(NamedTuple):
    """A key of an unknown version, from a newer Kafka or for another kind of group."""

    version: int


def encode_key(key: CoordinatorKey) -> bytes:
    """Encode the key. Raises struct.error for a name of more than 32,767 bytes."""
    if isinstance(key, OffsetCommitKey):
        return offsets.encode_key(key)
    if isinstance(key, TransactionLogKey):
        return transactions.encode_key(key)
    if isinstance(key, GroupMetadataKey):
        return groups.encode_key(key)
    if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return share_states.encode_key(key)
    return _NEWER.encode_key(key)


def encode_value(value: CoordinatorValue) -> bytes:
    """Encode the value. Raises struct.error for a value that does not fit its field."""
    if isinstance(value, OffsetCommitValue):
        return offsets.encode_value(value)
    if isinstance(value, TransactionLogValue):
        return transactions.encode_value(value)
    if isinstance(value, GroupMetadataValue):
        return groups.encode_value(value)
    if isinstance(value, ShareSnapshotValue | ShareUpdateValue):
        return share_states.encode_value(value)
    return _NEWER.encode_value(value)


def decode_group_key(data: bytes) -> CoordinatorKey | UnknownKey:
    """Decode the key of a record of ``__consumer_offsets``, for a group of any kind. Raises MalformedMessage."""
    found = decode_key(data)
    if isinstance(found, UnknownKey) and found.version in _NEWER.keys:
        key: CoordinatorKey = _NEWER.decode_key(data)
        return key
    return found


def decode_key(data: bytes) -> CoordinatorKey | UnknownKey:
    """Decode the key of a record of ``__consumer_offsets``, for an offset or a classic group. Raises MalformedMessage."""
    if len(data) < 2:
        raise MalformedMessage(f"a key of {len(data)} bytes")
    version: int = _INT16.unpack_from(data)[0]
    if 0 <= version <= offsets.KEY_VERSION:
        return offsets.decode_key(data)
    if version == groups.KEY_VERSION:
        return groups.decode_key(data)
    return UnknownKey(version)


def decode_transaction_key(data: bytes) -> TransactionLogKey | UnknownKey:
    """Decode the key of a record of ``__transaction_state``. Raises MalformedMessage."""
    if len(data) < 2:
        raise MalformedMessage(f"a key of {len(data)} bytes")
    version: int = _INT16.unpack_from(data)[0]
    return transactions.decode_key(data) if version == transactions.KEY_VERSION else UnknownKey(version)


def decode_share_state_key(data: bytes) -> ShareStateKey | UnknownKey:
    """Decode the key of a record of ``__share_group_state``. Raises MalformedMessage."""
    if len(data) < 2:
        raise MalformedMessage(f"a key of {len(data)} bytes")
    version: int = _INT16.unpack_from(data)[0]
    if version in {share_states.SNAPSHOT_KEY_VERSION, share_states.UPDATE_KEY_VERSION}:
        return share_states.decode_key(data)
    return UnknownKey(version)


def decode_value(key: CoordinatorKey, data: bytes | None) -> CoordinatorValue | None:
    """Decode the value of a record with this ``key``; None for a tombstone. Raises MalformedMessage."""
    if data is None:
        return None
    if isinstance(key, OffsetCommitKey):
        return offsets.decode_value(data)
    if isinstance(key, TransactionLogKey):
        return transactions.decode_value(data)
    if isinstance(key, GroupMetadataKey):
        return groups.decode_value(data)
    if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return share_states.decode_value(key, data)
    value: CoordinatorValue = _NEWER.decode_value(key, data)
    return value
