"""The part that consumer, share and streams groups have in common: epochs, members and the target assignment.

``ModernGroups`` is the part that the owners of these groups in a shard have in common. Kafka's class is ModernGroup. Its streams
groups are none, and have the same fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, cast

from odradek.coordinator.group.consumer.topics import TopicHashes
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.coordinator.group.config import GroupReports
    from odradek.coordinator.group.consumer.topics import Topics
    from odradek.coordinator.group.interface import Group
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.timeline import SnapshotRegistry
    from odradek.protocol.coordinator_records.consumer_groups import ConsumerGroupTargetAssignmentMetadataValue
    from odradek.protocol.coordinator_records.share_groups import ShareGroupTargetAssignmentMetadataValue
    from odradek.protocol.coordinator_records.streams_groups import StreamsGroupTargetAssignmentMetadataValue

MemberT = TypeVar("MemberT")
TargetT = TypeVar("TargetT")
GroupT = TypeVar("GroupT", bound="ModernGroup[Any, Any]")

# Both epochs of a new group, as in Kafka. The first member raises the group's epoch.
INITIAL_EPOCH: Final = 1
NO_EPOCH: Final = -1


class ModernGroup(ABC, Generic[MemberT, TargetT]):
    """A group whose target assignment is computed by the coordinator. Loop thread only.

    ``members`` and ``targets`` map member ids to members and to target assignments. ``group_type`` is the type that ListGroups
    shows.
    """

    __slots__ = ("epoch", "fresh_epoch", "group_id", "group_type", "members", "metadata_hash", "target_metadata", "targets")

    def __init__(self, group_type: str, snapshots: SnapshotRegistry, group_id: str) -> None:
        self.group_type = group_type
        self.group_id = group_id
        self.epoch = TimelineValue(snapshots, INITIAL_EPOCH)
        self.metadata_hash = TimelineValue(snapshots, 0)
        # (epoch of the target assignment, time it was computed in ms since the epoch).
        self.target_metadata = TimelineValue(snapshots, (INITIAL_EPOCH, 0))
        self.members: TimelineDict[str, MemberT] = TimelineDict(snapshots)
        self.targets: TimelineDict[str, TargetT] = TimelineDict(snapshots)
        # The group's epoch when its topics' metadata was last read; None if it must be read again. Not persistent.
        self.fresh_epoch: int | None = None

    @property
    def assignment_epoch(self) -> int:
        """Return the epoch of the target assignment."""
        return self.target_metadata.get()[0]

    @property
    def is_stale(self) -> bool:
        """Return whether the topics' metadata must be read again: they changed, or a decision on them was rolled back."""
        return self.fresh_epoch is None or self.epoch.get() < self.fresh_epoch

    @property
    def protocol_type(self) -> str | None:
        """Return the group's type, also for a group without members, as in Kafka."""
        return self.group_type

    @property
    def is_empty(self) -> bool:
        """Return whether the group has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        """Return the number of members."""
        return len(self.members)

    def describe(self) -> None:
        """Return None: such groups have a describing API of their own."""

    def validate_delete(self) -> ErrorCode:
        """Return NON_EMPTY_GROUP while the group has members."""
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    @abstractmethod
    def depends_on(self, topic: str) -> bool:
        """Return whether a change of the topic may change the target assignment."""

    def __str__(self) -> str:
        return f"{self.group_type} group {self.group_id}"

    def replay_target(self, member_id: str, target: TargetT | None) -> None:
        """Set or remove a member's target assignment."""
        if target is None:
            self.targets.pop(member_id)
        else:
            self.targets[member_id] = target

    def replay_target_metadata(
        self,
        value: ConsumerGroupTargetAssignmentMetadataValue
        | ShareGroupTargetAssignmentMetadataValue
        | StreamsGroupTargetAssignmentMetadataValue
        | None,
    ) -> None:
        """Set or remove the epoch of the target assignment."""
        found = (NO_EPOCH, 0) if value is None else (value.assignment_epoch, value.assignment_timestamp_ms)
        self.target_metadata.set(found)


class ModernGroups(ABC, Generic[GroupT]):
    """Owner of one type of groups in the shard's ``registry``, which are their own stored form. Loop thread only.

    ``heartbeats`` (granted ones) and ``sessions_expired`` count since the shard was loaded.
    """

    __slots__ = (
        "_by_id",
        "_group_type",
        "_hashes",
        "_of",
        "_stored",
        "clock",
        "heartbeats",
        "registry",
        "reports",
        "sessions_expired",
        "timers",
        "topics",
    )

    def __init__(
        self,
        group_type: str,
        of: type[GroupT],
        registry: GroupRegistry,
        topics: Topics,
        timers: ShardContext,
        reports: GroupReports,
    ) -> None:
        """``of`` is the groups' class."""
        self._group_type = group_type
        self._of = of
        self.registry = registry
        self._stored = registry.stored
        # The stored groups, and some whose records were rolled back.
        self._by_id: dict[str, GroupT] = {}
        self._hashes = TopicHashes(topics)
        self.topics = topics
        self.clock = timers.clock
        self.timers = timers
        self.reports = reports
        self.heartbeats = 0
        self.sessions_expired = 0
        registry.add_kind(group_type, of, self)

    @abstractmethod
    def new_group(self, group_id: str) -> GroupT:
        """Return a group to decide on before it has records."""

    def find(self, group_id: str) -> GroupT | None:
        """Return the group; None if there is none, or it is of another type. HOT."""
        group = self._stored.get(group_id)
        return group if isinstance(group, self._of) else None

    def require(self, group_id: str) -> GroupT:
        """Return the group. KafkaError: GROUP_ID_NOT_FOUND."""
        group = self.find(group_id)
        if group is None:
            raise self.not_found(group_id)
        return group

    def not_found(self, group_id: str) -> KafkaError:
        """Return the error for an id without a group of this type."""
        is_other = self.registry.find(group_id) is not None
        reason = f"Group {group_id} is not a {self._group_type} group." if is_other else f"Group {group_id} not found."
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, reason)

    def each(self) -> Iterator[GroupT]:
        """Iterate over all groups of this type."""
        for group_id in list(self._by_id):
            group = self.find(group_id)
            if group is not None:
                yield group

    def restore(self, group_id: str, value: object) -> Group:  # noqa: ARG002  the group knows its id
        """Return ``value``, as a group is its own stored form."""
        return cast("Group", value)

    def note_alive(self, group: Group, member_id: str) -> None:
        """No-op: only heartbeats keep a member's session alive."""

    def metadata_hash(self, names: Iterable[str]) -> int:
        """Return the hash of those of the named topics that exist."""
        return self._hashes.of(names)

    def note_topics(self, changed: Iterable[str]) -> None:
        """Note created, deleted or changed topics. Groups that depend on them read their metadata again."""
        names = list(changed)
        self._hashes.forget(names)
        for group in self.each():
            if any(group.depends_on(name) for name in names):
                group.fresh_epoch = None

    def find_or_create(self, group_id: str) -> GroupT:
        """Return the group that a replayed record belongs to."""
        group = self.find(group_id)
        if group is None:
            group = self._by_id[group_id] = self.new_group(group_id)
            # This replaces a simple group that offsets created.
            self._stored[group_id] = group
            self.registry.live.pop(group_id, None)
        return group


def ensure_valid(condition: object, message: str) -> None:
    """Raise KafkaError(INVALID_REQUEST) unless a condition of the request's form holds."""
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def unknown_member(group: ModernGroup[Any, Any], member_id: str) -> NoReturn:
    """Raise KafkaError(UNKNOWN_MEMBER_ID)."""
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}")


def adjust_counts(counts: TimelineDict[str, int], old: frozenset[str | None], new: frozenset[str | None]) -> None:
    """Decrement the counts of names no longer present, increment those of new names."""
    if old is new or old == new:
        return
    for name in old - new:
        if name is not None:
            count = (counts.get(name) or 0) - 1
            if count > 0:
                counts[name] = count
            else:
                counts.pop(name)
    for name in new - old:
        if name is not None:
            counts[name] = (counts.get(name) or 0) + 1
