"""Records of consumer groups (KIP-848) in ``__consumer_offsets``. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID


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


class PartitionMetadata(NamedTuple):
    """A partition, and the racks of its replicas."""

    partition: int
    racks: tuple[str, ...]


class TopicMetadata(NamedTuple):
    """A topic, and its partitions."""

    topic_id: UUID
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionMetadata, ...]


class ConsumerGroupPartitionMetadataValue(NamedTuple):
    """The topics' metadata. Only Kafka before 4.1 wrote it; deleted when found."""

    topics: tuple[TopicMetadata, ...]


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
    """A member's own metadata. ``subscribed_topic_names`` are sorted.

    ``classic_member_metadata`` must be written as null: if the field is missing, Kafka takes the member for a classic one.
    """

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None


class ConsumerGroupTargetAssignmentMetadataKey(NamedTuple):
    """Kind 6."""

    group: str


class ConsumerGroupTargetAssignmentMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and when it was computed."""

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
    """The target assignment of a member."""

    topic_partitions: tuple[TargetPartitions, ...]


class ConsumerGroupCurrentMemberAssignmentKey(NamedTuple):
    """Kind 8."""

    group: str
    member_id: str


class OwnedPartitions(NamedTuple):
    """Partitions of a topic, and the epoch of each assignment. Kafka before 4.3 writes none."""

    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = ()


class ConsumerGroupCurrentMemberAssignmentValue(NamedTuple):
    """A member's epochs, its state by Kafka's number, and its partitions."""

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
    """The matching topics, sorted; the version of the metadata, and the time."""

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
# By the same: the classes of the value and its structs, by Kafka's names. The value's class comes first.
CLASSES: Final[dict[int, dict[str, type[Any]]]] = {
    3: {"ConsumerGroupMetadataValue": ConsumerGroupMetadataValue},
    4: {
        "ConsumerGroupPartitionMetadataValue": ConsumerGroupPartitionMetadataValue,
        "TopicMetadata": TopicMetadata,
        "PartitionMetadata": PartitionMetadata,
    },
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
