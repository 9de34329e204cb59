"""The records of consumer groups (KIP-848) as values: keys 3 to 8 and 16 of ``__consumer_offsets``, byte for byte as Kafka 4.4.

    3   group          epoch, tagged: hash of the subscribed topics' metadata
    4   group          only in Kafka before 4.1; deleted when found
    5   group, member  the member's own metadata, and its subscription
    6   group          epoch of the target assignment, tagged: the time it was computed
    7   group, member  target assignment
    8   group, member  epochs, state, assigned partitions and those to revoke, each with the epoch of its assignment
    16  group, regex   the topics that match, as of a version of the metadata and a time

``record_kinds`` has the format. ``newer_groups`` reads the same records for display.

Source: group-coordinator/src/main/resources/common/message of Apache Kafka 4.4.
"""

from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from odradek.protocol.coordinator_records.fields import read_int16
from odradek.protocol.coordinator_records.record_kinds import RecordKinds

_INT16: Final = Struct(">h")


class ConsumerGroupMetadataKey(NamedTuple):
    """Kind 3."""

    group: str


class ConsumerGroupMetadataValue(NamedTuple):
    """The group's epoch, and the hash of its subscribed topics' metadata; 0 without any."""

    epoch: int
    metadata_hash: int = 0


class ConsumerGroupPartitionMetadataKey(NamedTuple):
    """Kind 4."""

    group: str


class ConsumerGroupPartitionMetadataValue(NamedTuple):
    """The topics' metadata as Kafka before 4.1 stored it, undecoded. Only its existence matters."""

    data: bytes


class ConsumerGroupMemberMetadataKey(NamedTuple):
    """Kind 5."""

    group: str
    member_id: str


class ClassicProtocol(NamedTuple):
    """A protocol of a member, and the member's metadata for it."""

    name: str
    metadata: bytes


class ClassicMemberMetadata(NamedTuple):
    """Data of a member that speaks the classic protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]


class ConsumerGroupMemberMetadataValue(NamedTuple):
    """A member's own metadata. ``subscribed_topic_names`` are sorted."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    # Null must be written: if the field is missing, Kafka takes the member for a classic one.
    classic_member_metadata: ClassicMemberMetadata | None = None


class ConsumerGroupTargetAssignmentMetadataKey(NamedTuple):
    """Kind 6."""

    group: str


class ConsumerGroupTargetAssignmentMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and the time it was computed, ms since the epoch."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


class ConsumerGroupTargetAssignmentMemberKey(NamedTuple):
    """Kind 7."""

    group: str
    member_id: str


class TargetPartitions(NamedTuple):
    """Partitions of a topic."""

    topic_id: UUID
    partitions: tuple[int, ...]


class ConsumerGroupTargetAssignmentMemberValue(NamedTuple):
    """The target assignment of a member: its partitions once all others have given them up."""

    topic_partitions: tuple[TargetPartitions, ...]


class ConsumerGroupCurrentMemberAssignmentKey(NamedTuple):
    """Kind 8."""

    group: str
    member_id: str


class OwnedPartitions(NamedTuple):
    """Partitions of a topic, and the epoch in which each was assigned. Kafka before 4.3 writes no epochs: None."""

    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = None


class ConsumerGroupCurrentMemberAssignmentValue(NamedTuple):
    """A member's current assignment: its epochs, its state by Kafka's number, its partitions."""

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
    """The matching topics, sorted; the version of the metadata, and when they were resolved, ms since the epoch."""

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
# By the key's version: the classes of the value and its structs, by Kafka's names. The value's class comes first.
_CLASSES: Final[dict[int, dict[str, type[Any]]]] = {
    3: {"ConsumerGroupMetadataValue": ConsumerGroupMetadataValue},
    5: {
        "ConsumerGroupMemberMetadataValue": ConsumerGroupMemberMetadataValue,
        "ClassicMemberMetadata": ClassicMemberMetadata,
        "ClassicProtocol": ClassicProtocol,
    },
    6: {"ConsumerGroupTargetAssignmentMetadataValue": ConsumerGroupTargetAssignmentMetadataValue},
    7: {
        "ConsumerGroupTargetAssignmentMemberValue": ConsumerGroupTargetAssignmentMemberValue,
        "TopicPartition": TargetPartitions,
    },
    8: {
        "ConsumerGroupCurrentMemberAssignmentValue": ConsumerGroupCurrentMemberAssignmentValue,
        "TopicPartitions": OwnedPartitions,
    },
    16: {"ConsumerGroupRegularExpressionValue": ConsumerGroupRegularExpressionValue},
}
_KINDS: Final = RecordKinds(KEYS, _CLASSES)


def encode_key(key: ConsumerGroupKey) -> bytes:
    """Encode the key. Raises struct.error for a name of more than 32,767 bytes."""
    return _KINDS.encode_key(key)


def decode_key(data: bytes) -> ConsumerGroupKey:
    """Decode the key in ``data``, whose version is one of ``KEYS``. Raises MalformedMessage."""
    key: ConsumerGroupKey = _KINDS.decode_key(data)
    return key


def encode_value(value: ConsumerGroupValue) -> bytes:
    """Encode the value as Kafka 4.4 does. Raises struct.error for a number that does not fit its field."""
    if isinstance(value, ConsumerGroupPartitionMetadataValue):
        return _INT16.pack(0) + value.data
    return _KINDS.encode_value(value)


def decode_value(key: ConsumerGroupKey, data: bytes) -> ConsumerGroupValue:
    """Decode the value of a record with this ``key``. Raises MalformedMessage."""
    if isinstance(key, ConsumerGroupPartitionMetadataKey):
        _, position = read_int16(data, 0)
        return ConsumerGroupPartitionMetadataValue(data[position:])
    value: ConsumerGroupValue = _KINDS.decode_value(key, data)
    return value
