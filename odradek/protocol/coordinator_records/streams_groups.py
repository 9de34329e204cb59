"""Records of streams groups (KIP-1071) in ``__consumer_offsets``. Written by tools/generate_messages.py."""

from typing import Any, Final, NamedTuple, TypeAlias


class StreamsGroupMetadataKey(NamedTuple):
    """Kind 17."""

    group: str


class LastAssignmentConfig(NamedTuple):
    """A config of the last assignment."""

    key: str
    value: str


class StreamsGroupMetadataValue(NamedTuple):
    """The group's epoch, and the hash of its topics' metadata; 0 without any.

    The other epochs are -1 if there is none. ``stored_description_topology_epoch`` is -2 if a plugin was interrupted.
    """

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = ()
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1


class StreamsGroupMemberMetadataKey(NamedTuple):
    """Kind 19."""

    group: str
    member_id: str


class Endpoint(NamedTuple):
    """The address at which other instances of an application query this one."""

    host: str
    port: int


class KeyValue(NamedTuple):
    """A client tag."""

    key: str
    value: str


class StreamsGroupMemberMetadataValue(NamedTuple):
    """A member's own metadata. ``client_tags`` are sorted by key."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: tuple[KeyValue, ...]


class StreamsGroupTargetAssignmentMetadataKey(NamedTuple):
    """Kind 20."""

    group: str


class StreamsGroupTargetAssignmentMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and when it was computed."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


class StreamsGroupTargetAssignmentMemberKey(NamedTuple):
    """Kind 21."""

    group: str
    member_id: str


class TargetTaskIds(NamedTuple):
    """Tasks of a subtopology."""

    subtopology_id: str
    partitions: tuple[int, ...]


class StreamsGroupTargetAssignmentMemberValue(NamedTuple):
    """The target assignment of a member."""

    active_tasks: tuple[TargetTaskIds, ...]
    standby_tasks: tuple[TargetTaskIds, ...]
    warmup_tasks: tuple[TargetTaskIds, ...]


class StreamsGroupCurrentMemberAssignmentKey(NamedTuple):
    """Kind 22."""

    group: str
    member_id: str


class TaskIds(NamedTuple):
    """Tasks of a subtopology. Active tasks have the epochs in which they were assigned."""

    subtopology_id: str
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = ()


class StreamsGroupCurrentMemberAssignmentValue(NamedTuple):
    """A member's epochs, its state by Kafka's number, and its tasks."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]
    active_tasks_pending_revocation: tuple[TaskIds, ...]
    standby_tasks_pending_revocation: tuple[TaskIds, ...]
    warmup_tasks_pending_revocation: tuple[TaskIds, ...]


class StreamsGroupTopologyKey(NamedTuple):
    """Kind 23."""

    group: str


class TopicConfig(NamedTuple):
    """A config of an internal topic."""

    key: str
    value: str


class TopicInfo(NamedTuple):
    """An internal topic. 0 partitions or replicas leave the number to the coordinator, or to the broker."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: tuple[TopicConfig, ...]


class CopartitionGroup(NamedTuple):
    """Topics that need the same number of partitions, by their places in the subtopology's lists."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(NamedTuple):
    """A part of a topology that is connected by topics with the other parts only."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


class StreamsGroupTopologyValue(NamedTuple):
    """The topology of the application."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]


StreamsGroupKey: TypeAlias = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)
StreamsGroupValue: TypeAlias = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupTopologyValue
)
# By the key's version.
KEYS: Final[dict[int, type[Any]]] = {
    17: StreamsGroupMetadataKey,
    19: StreamsGroupMemberMetadataKey,
    20: StreamsGroupTargetAssignmentMetadataKey,
    21: StreamsGroupTargetAssignmentMemberKey,
    22: StreamsGroupCurrentMemberAssignmentKey,
    23: StreamsGroupTopologyKey,
}
# By the same: the classes of the value and its structs, by Kafka's names. The value's class comes first.
CLASSES: Final[dict[int, dict[str, type[Any]]]] = {
    17: {
        "StreamsGroupMetadataValue": StreamsGroupMetadataValue,
        "LastAssignmentConfig": LastAssignmentConfig,
    },
    19: {
        "StreamsGroupMemberMetadataValue": StreamsGroupMemberMetadataValue,
        "Endpoint": Endpoint,
        "KeyValue": KeyValue,
    },
    20: {"StreamsGroupTargetAssignmentMetadataValue": StreamsGroupTargetAssignmentMetadataValue},
    21: {
        "StreamsGroupTargetAssignmentMemberValue": StreamsGroupTargetAssignmentMemberValue,
        "TaskIds": TargetTaskIds,
    },
    22: {
        "StreamsGroupCurrentMemberAssignmentValue": StreamsGroupCurrentMemberAssignmentValue,
        "TaskIds": TaskIds,
    },
    23: {
        "StreamsGroupTopologyValue": StreamsGroupTopologyValue,
        "Subtopology": Subtopology,
        "TopicInfo": TopicInfo,
        "TopicConfig": TopicConfig,
        "CopartitionGroup": CopartitionGroup,
    },
}
