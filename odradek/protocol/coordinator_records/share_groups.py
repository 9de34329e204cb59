"""Records of share groups (KIP-932) in ``__consumer_offsets``. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID


class ShareGroupMemberMetadataKey(NamedTuple):
    """Kind 10."""

    group: str
    member_id: str


class ShareGroupMemberMetadataValue(NamedTuple):
    """A member's own metadata. ``subscribed_topic_names`` are sorted."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


class ShareGroupMetadataKey(NamedTuple):
    """Kind 11."""

    group: str


class ShareGroupMetadataValue(NamedTuple):
    """The group's epoch, and the hash of its subscribed topics' metadata; 0 without any."""

    epoch: int
    metadata_hash: int


class ShareGroupTargetAssignmentMetadataKey(NamedTuple):
    """Kind 12."""

    group: str


class ShareGroupTargetAssignmentMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and when it was computed."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


class ShareGroupTargetAssignmentMemberKey(NamedTuple):
    """Kind 13."""

    group: str
    member_id: str


class SharePartitions(NamedTuple):
    """Partitions of a topic."""

    topic_id: UUID
    partitions: tuple[int, ...]


class ShareGroupTargetAssignmentMemberValue(NamedTuple):
    """The target assignment of a member."""

    topic_partitions: tuple[SharePartitions, ...]


class ShareGroupCurrentMemberAssignmentKey(NamedTuple):
    """Kind 14."""

    group: str
    member_id: str


class ShareGroupCurrentMemberAssignmentValue(NamedTuple):
    """A member's epochs, its state by Kafka's number, and its partitions."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[SharePartitions, ...]


class ShareGroupStatePartitionMetadataKey(NamedTuple):
    """Kind 15."""

    group: str


class TopicPartitionsInfo(NamedTuple):
    """Partitions of a topic, with its name."""

    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...]


class TopicInfo(NamedTuple):
    """A topic and its name."""

    topic_id: UUID
    topic_name: str


class ShareGroupStatePartitionMetadataValue(NamedTuple):
    """The partitions, and deleted topics, by the life of their share state."""

    initializing_topics: tuple[TopicPartitionsInfo, ...]
    initialized_topics: tuple[TopicPartitionsInfo, ...]
    deleting_topics: tuple[TopicInfo, ...]


ShareGroupKey: TypeAlias = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
ShareGroupValue: TypeAlias = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
# By the key's version.
KEYS: Final[dict[int, type[Any]]] = {
    10: ShareGroupMemberMetadataKey,
    11: ShareGroupMetadataKey,
    12: ShareGroupTargetAssignmentMetadataKey,
    13: ShareGroupTargetAssignmentMemberKey,
    14: ShareGroupCurrentMemberAssignmentKey,
    15: ShareGroupStatePartitionMetadataKey,
}
# By the same: the classes of the value and its structs, by Kafka's names. The value's class comes first.
CLASSES: Final[dict[int, dict[str, type[Any]]]] = {
    10: {"ShareGroupMemberMetadataValue": ShareGroupMemberMetadataValue},
    11: {"ShareGroupMetadataValue": ShareGroupMetadataValue},
    12: {"ShareGroupTargetAssignmentMetadataValue": ShareGroupTargetAssignmentMetadataValue},
    13: {
        "ShareGroupTargetAssignmentMemberValue": ShareGroupTargetAssignmentMemberValue,
        "TopicPartition": SharePartitions,
    },
    14: {
        "ShareGroupCurrentMemberAssignmentValue": ShareGroupCurrentMemberAssignmentValue,
        "TopicPartitions": SharePartitions,
    },
    15: {
        "ShareGroupStatePartitionMetadataValue": ShareGroupStatePartitionMetadataValue,
        "TopicPartitionsInfo": TopicPartitionsInfo,
        "TopicInfo": TopicInfo,
    },
}
