"""The records of consumer groups (KIP-848) as values: keys 3 to 8 and 16 of ``__consumer_offsets``, byte for byte as Kafka 4.3.

    3   group          epoch, tagged: hash of the subscribed topics' metadata
    4   group          of Kafka before 4.1 alone; it is deleted when it is found
    5   group, member  what the member says of itself, and what it subscribes to
    6   group          epoch of the target assignment, tagged: when it was computed
    7   group, member  target assignment
    8   group, member  epochs, state, what is assigned and what is to be revoked, each partition with the epoch of its assignment
    16  group, regex   the topics that match, as of a version of the metadata and a time

A key is an int16, the kind, and strings with an int16 length. A value is an int16 0, compact fields and tagged fields.
``newer_groups`` reads the same records for display.

Source: group-coordinator/src/main/resources/common/message of Apache Kafka 4.3.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from odradek.protocol.coordinator_records.fields import (
    ensure_end,
    read_compact_bytes,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_compact_string,
    read_nullable_string,
    read_tagged_fields,
    required,
    take,
)
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.varint import read_uvarint, uvarint

T = TypeVar("T")

_INT8: Final = Struct(">b")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_NO_TAGS: Final = b"\0"


class ConsumerGroupMetadataKey(NamedTuple):
    """Kind 3."""

    group: str


class ConsumerGroupMetadataValue(NamedTuple):
    """The group's epoch, and the hash of the metadata of the topics it is subscribed to; 0 without any."""

    epoch: int
    metadata_hash: int = 0


class ConsumerGroupPartitionMetadataKey(NamedTuple):
    """Kind 4."""

    group: str


class ConsumerGroupPartitionMetadataValue(NamedTuple):
    """What Kafka before 4.1 knew of the topics, undecoded."""

    data: bytes


class ConsumerGroupMemberMetadataKey(NamedTuple):
    """Kind 5."""

    group: str
    member_id: str


class ClassicMemberMetadata(NamedTuple):
    """What a member has that speaks the classic protocol: its session timeout, and (name, metadata) of its protocols."""

    session_timeout_ms: int
    supported_protocols: tuple[tuple[str, bytes], ...]


class ConsumerGroupMemberMetadataValue(NamedTuple):
    """What a member says of itself. ``subscribed_topic_names`` are sorted."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicMemberMetadata | None = None


class ConsumerGroupTargetAssignmentMetadataKey(NamedTuple):
    """Kind 6."""

    group: str


class ConsumerGroupTargetAssignmentMetadataValue(NamedTuple):
    """The epoch of the group that the target assignment is for, and when it was computed, ms since the epoch."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


class ConsumerGroupTargetAssignmentMemberKey(NamedTuple):
    """Kind 7."""

    group: str
    member_id: str


class ConsumerGroupTargetAssignmentMemberValue(NamedTuple):
    """What a member is to have in the end: partitions by topic id."""

    topic_partitions: tuple[tuple[UUID, tuple[int, ...]], ...]


class ConsumerGroupCurrentMemberAssignmentKey(NamedTuple):
    """Kind 8."""

    group: str
    member_id: str


class OwnedPartitions(NamedTuple):
    """Partitions of a topic, and the epoch in which each was assigned. Kafka before 4.3 writes no epochs: None."""

    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None


class ConsumerGroupCurrentMemberAssignmentValue(NamedTuple):
    """What a member has: its epochs, its state by Kafka's number, its partitions."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[OwnedPartitions, ...]
    partitions_pending_revocation: tuple[OwnedPartitions, ...]


class ConsumerGroupRegularExpressionKey(NamedTuple):
    """Kind 16."""

    group: str
    regular_expression: str


class ConsumerGroupRegularExpressionValue(NamedTuple):
    """The topics that match, sorted; the version of the metadata, and when they were looked for, ms since the epoch."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


ConsumerGroupKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue: TypeAlias = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

# By the key's version.
KEYS: Final[dict[int, type[Any]]] = {
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    5: ConsumerGroupMemberMetadataKey,
    6: ConsumerGroupTargetAssignmentMetadataKey,
    7: ConsumerGroupTargetAssignmentMemberKey,
    8: ConsumerGroupCurrentMemberAssignmentKey,
    16: ConsumerGroupRegularExpressionKey,
}
_VERSIONS: Final = {key_class: version for version, key_class in KEYS.items()}

# ------------------------------------------------------------------------------------------------------------------ keys


def encode_key(key: ConsumerGroupKey) -> bytes:
    """The key's bytes. Raises struct.error for a name of more than 32,767 bytes."""
    chunks = [_INT16.pack(_VERSIONS[type(key)])]
    for text in key:
        raw = text.encode()
        chunks += (_INT16.pack(len(raw)), raw)
    return b"".join(chunks)


def decode_key(data: bytes) -> ConsumerGroupKey:
    """The key in ``data``, whose version is one of ``KEYS``. Raises MalformedMessage."""
    version, position = read_int16(data, 0)
    key_class = KEYS[version]
    names = []
    for _ in key_class._fields:
        text, position = read_nullable_string(data, position)
        names.append(required(text))
    ensure_end(data, position)
    return key_class(*names)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------------------- encode


def encode_value(value: ConsumerGroupValue) -> bytes:
    """The value's bytes, as Kafka 4.3 writes them. Raises struct.error for a number that does not fit its field."""
    return _INT16.pack(0) + _ENCODERS[type(value)](value)


def _metadata(value: ConsumerGroupMetadataValue) -> bytes:
    return _INT32.pack(value.epoch) + _tagged_int64(value.metadata_hash)


def _undecoded(value: ConsumerGroupPartitionMetadataValue) -> bytes:
    return value.data


def _member(value: ConsumerGroupMemberMetadataValue) -> bytes:
    return b"".join(
        (
            _nullable(value.instance_id),
            _nullable(value.rack_id),
            _string(value.client_id),
            _string(value.client_host),
            _array(value.subscribed_topic_names, _string),
            _nullable(value.subscribed_topic_regex),
            _INT32.pack(value.rebalance_timeout_ms),
            _nullable(value.server_assignor),
            # Where the field is not there, Kafka takes the member for a classic one.
            _tagged(b"\0" if value.classic is None else b"\1" + _classic(value.classic)),
        )
    )


def _classic(value: ClassicMemberMetadata) -> bytes:
    return _INT32.pack(value.session_timeout_ms) + _array(value.supported_protocols, _protocol) + _NO_TAGS


def _protocol(value: tuple[str, bytes]) -> bytes:
    name, metadata = value
    return _string(name) + uvarint(len(metadata) + 1) + metadata + _NO_TAGS


def _target_metadata(value: ConsumerGroupTargetAssignmentMetadataValue) -> bytes:
    return _INT32.pack(value.assignment_epoch) + _tagged_int64(value.assignment_timestamp_ms)


def _target(value: ConsumerGroupTargetAssignmentMemberValue) -> bytes:
    return _array(value.topic_partitions, _target_partitions) + _NO_TAGS


def _target_partitions(value: tuple[UUID, tuple[int, ...]]) -> bytes:
    return value[0].bytes + _int32s(value[1]) + _NO_TAGS


def _current(value: ConsumerGroupCurrentMemberAssignmentValue) -> bytes:
    return b"".join(
        (
            _INT32.pack(value.member_epoch),
            _INT32.pack(value.previous_member_epoch),
            _INT8.pack(value.state),
            _array(value.assigned_partitions, _owned),
            _array(value.partitions_pending_revocation, _owned),
            _NO_TAGS,
        )
    )


def _owned(value: OwnedPartitions) -> bytes:
    epochs = value.assignment_epochs
    tags = _NO_TAGS if epochs is None else _tagged(_int32s(epochs))
    return value.topic_id.bytes + _int32s(value.partitions) + tags


def _regex(value: ConsumerGroupRegularExpressionValue) -> bytes:
    return _array(value.topics, _string) + _INT64.pack(value.version) + _INT64.pack(value.timestamp_ms) + _NO_TAGS


_ENCODERS: Final[dict[type[Any], Callable[[Any], bytes]]] = {
    ConsumerGroupMetadataValue: _metadata,
    ConsumerGroupPartitionMetadataValue: _undecoded,
    ConsumerGroupMemberMetadataValue: _member,
    ConsumerGroupTargetAssignmentMetadataValue: _target_metadata,
    ConsumerGroupTargetAssignmentMemberValue: _target,
    ConsumerGroupCurrentMemberAssignmentValue: _current,
    ConsumerGroupRegularExpressionValue: _regex,
}


def _string(text: str) -> bytes:
    raw = text.encode()
    return uvarint(len(raw) + 1) + raw


def _nullable(text: str | None) -> bytes:
    return b"\0" if text is None else _string(text)


def _array(elements: Sequence[T], encode: Callable[[T], bytes]) -> bytes:
    return uvarint(len(elements) + 1) + b"".join(map(encode, elements))


def _int32s(numbers: Sequence[int]) -> bytes:
    return uvarint(len(numbers) + 1) + b"".join(map(_INT32.pack, numbers))


def _tagged(field: bytes) -> bytes:
    """Tagged fields: one, of tag 0."""
    return b"\1\0" + uvarint(len(field)) + field


def _tagged_int64(number: int) -> bytes:
    """Tagged fields: an int64 of tag 0, which is left out at its default."""
    return _tagged(_INT64.pack(number)) if number else _NO_TAGS


# --------------------------------------------------------------------------------------------------------------- decode


def decode_value(key: ConsumerGroupKey, data: bytes) -> ConsumerGroupValue:
    """The value of a record with this ``key``. Raises MalformedMessage."""
    version, position = read_int16(data, 0)
    if version != 0:
        raise MalformedMessage(f"a value of version {version} where {type(key).__name__} has 0")
    value, position = _DECODERS[type(key)](data, position)
    ensure_end(data, position)
    return value  # type: ignore[no-any-return]


def _read_metadata(data: bytes, position: int) -> tuple[ConsumerGroupMetadataValue, int]:
    epoch, position = read_int32(data, position)
    number, position = _read_tagged_int64(data, position)
    return ConsumerGroupMetadataValue(epoch, number), position


def _read_undecoded(data: bytes, position: int) -> tuple[ConsumerGroupPartitionMetadataValue, int]:
    return ConsumerGroupPartitionMetadataValue(data[position:]), len(data)


def _read_member(data: bytes, position: int) -> tuple[ConsumerGroupMemberMetadataValue, int]:
    instance_id, position = read_nullable_compact_string(data, position)
    rack_id, position = read_nullable_compact_string(data, position)
    client_id, position = _read_string(data, position)
    client_host, position = _read_string(data, position)
    names, position = _read_array(data, position, _read_string)
    regex, position = read_nullable_compact_string(data, position)
    rebalance_timeout_ms, position = read_int32(data, position)
    assignor, position = read_nullable_compact_string(data, position)
    tags, position = read_tagged_fields(data, position)
    classic = None
    if tags.get(0, b"")[:1] == b"\1":
        classic, end = _read_classic(tags[0], 1)
        ensure_end(tags[0], end)
    value = ConsumerGroupMemberMetadataValue(
        instance_id, rack_id, client_id, client_host, names, regex, rebalance_timeout_ms, assignor, classic
    )
    return value, position


def _read_classic(data: bytes, position: int) -> tuple[ClassicMemberMetadata, int]:
    session_timeout_ms, position = read_int32(data, position)
    protocols, position = _read_array(data, position, _read_protocol)
    _, position = read_tagged_fields(data, position)
    return ClassicMemberMetadata(session_timeout_ms, protocols), position


def _read_protocol(data: bytes, position: int) -> tuple[tuple[str, bytes], int]:
    name, position = _read_string(data, position)
    metadata, position = read_compact_bytes(data, position)
    _, position = read_tagged_fields(data, position)
    return (name, metadata), position


def _read_target_metadata(data: bytes, position: int) -> tuple[ConsumerGroupTargetAssignmentMetadataValue, int]:
    epoch, position = read_int32(data, position)
    number, position = _read_tagged_int64(data, position)
    return ConsumerGroupTargetAssignmentMetadataValue(epoch, number), position


def _read_target(data: bytes, position: int) -> tuple[ConsumerGroupTargetAssignmentMemberValue, int]:
    partitions, position = _read_array(data, position, _read_target_partitions)
    _, position = read_tagged_fields(data, position)
    return ConsumerGroupTargetAssignmentMemberValue(partitions), position


def _read_target_partitions(data: bytes, position: int) -> tuple[tuple[UUID, tuple[int, ...]], int]:
    raw, position = take(data, position, 16)
    partitions, position = _read_array(data, position, read_int32)
    _, position = read_tagged_fields(data, position)
    return (UUID(bytes=raw), partitions), position


def _read_current(data: bytes, position: int) -> tuple[ConsumerGroupCurrentMemberAssignmentValue, int]:
    epoch, position = read_int32(data, position)
    previous, position = read_int32(data, position)
    state, position = take(data, position, 1)
    assigned, position = _read_array(data, position, _read_owned)
    pending, position = _read_array(data, position, _read_owned)
    _, position = read_tagged_fields(data, position)
    number = int.from_bytes(state, "big", signed=True)
    return ConsumerGroupCurrentMemberAssignmentValue(epoch, previous, number, assigned, pending), position


def _read_owned(data: bytes, position: int) -> tuple[OwnedPartitions, int]:
    raw, position = take(data, position, 16)
    partitions, position = _read_array(data, position, read_int32)
    tags, position = read_tagged_fields(data, position)
    epochs = None
    if 0 in tags:
        epochs, end = _read_array(tags[0], 0, read_int32)
        ensure_end(tags[0], end)
    return OwnedPartitions(UUID(bytes=raw), partitions, epochs), position


def _read_regex(data: bytes, position: int) -> tuple[ConsumerGroupRegularExpressionValue, int]:
    topics, position = _read_array(data, position, _read_string)
    version, position = read_int64(data, position)
    timestamp_ms, position = read_int64(data, position)
    _, position = read_tagged_fields(data, position)
    return ConsumerGroupRegularExpressionValue(topics, version, timestamp_ms), position


_DECODERS: Final[dict[type[Any], Callable[[bytes, int], tuple[Any, int]]]] = {
    ConsumerGroupMetadataKey: _read_metadata,
    ConsumerGroupPartitionMetadataKey: _read_undecoded,
    ConsumerGroupMemberMetadataKey: _read_member,
    ConsumerGroupTargetAssignmentMetadataKey: _read_target_metadata,
    ConsumerGroupTargetAssignmentMemberKey: _read_target,
    ConsumerGroupCurrentMemberAssignmentKey: _read_current,
    ConsumerGroupRegularExpressionKey: _read_regex,
}


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    text, position = read_nullable_compact_string(data, position)
    return required(text), position


def _read_array(data: bytes, position: int, read: Callable[[bytes, int], tuple[T, int]]) -> tuple[tuple[T, ...], int]:
    raw, position = read_uvarint(data, position)
    # An element takes one byte at least; null is malformed.
    if not 0 <= raw - 1 <= len(data) - position:
        raise MalformedMessage(f"an array of {raw - 1} in {len(data) - position} bytes")
    found = []
    for _ in range(raw - 1):
        one, position = read(data, position)
        found.append(one)
    return tuple(found), position


def _read_tagged_int64(data: bytes, position: int) -> tuple[int, int]:
    tags, position = read_tagged_fields(data, position)
    if 0 not in tags:
        return 0, position
    number, end = read_int64(tags[0], 0)
    ensure_end(tags[0], end)
    return number, position
