"""A share group, as read from its records. Only ``replay`` methods change it, and their changes can be rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.consumer.member import Partitions
from odradek.coordinator.group.modern_group import ModernGroup, adjust_counts
from odradek.coordinator.group.share.member import (
    NOTHING,
    ShareGroupMember,
    ShareGroupState,
    group_tombstones,
    with_sets,
)
from odradek.coordinator.group.share.state_partitions import StatePartitions, from_record
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from odradek.coordinator.runtime.result import CoordinatorRecord
    from odradek.coordinator.runtime.timeline import SnapshotRegistry
    from odradek.protocol.coordinator_records.share_groups import (
        ShareGroupStatePartitionMetadataKey,
        ShareGroupStatePartitionMetadataValue,
        ShareGroupTargetAssignmentMemberValue,
    )

GROUP_TYPE: Final = "share"


class ShareGroup(ModernGroup[ShareGroupMember, Partitions]):
    """The state of one share group. Loop thread only.

    Mappings: ``members`` by id, ``targets`` from member id to target assignment. ``name_counts`` counts the members that
    subscribe to a topic. ``state_partitions`` is None before the first record of kind 15.
    """

    __slots__ = (
        "_now_ms",
        "name_counts",
        "state_partitions",
    )

    def __init__(self, snapshots: SnapshotRegistry, group_id: str, now_ms: Callable[[], int]) -> None:
        super().__init__(GROUP_TYPE, snapshots, group_id)
        self._now_ms: Final = now_ms
        self.name_counts: TimelineDict[str, int] = TimelineDict(snapshots)
        self.state_partitions: TimelineValue[StatePartitions | None] = TimelineValue(snapshots, None)

    # ---------------------------------------------------------------------------------------------------------- state

    @property
    def states(self) -> StatePartitions:
        """Return the share partitions by the life of their state."""
        return self.state_partitions.get() or StatePartitions()

    def names_after(self, old: ShareGroupMember, new: ShareGroupMember | None) -> set[str]:
        """Return the topics that members subscribe to once ``old`` has become ``new``, or has left."""
        own = old.subscribed_topic_names if old.member_id in self.members else frozenset()
        names = {name for name, count in self.name_counts.items() if count > (name in own)}
        return names if new is None else names | new.subscribed_topic_names

    def has_unassigned_partitions(self) -> bool:
        """Return whether the target assignment lacks initialized partitions of a subscribed topic, or has others."""
        if not self.members:
            return False
        assigned: dict[UUID, frozenset[int]] = {}
        for target in self.targets.values():
            for topic_id, indexes in target.items():
                assigned[topic_id] = assigned.get(topic_id, frozenset()) | indexes
        return any(
            assigned.get(topic_id) != partitions
            for topic_id, (name, partitions) in self.states.initialized.items()
            if name in self.name_counts
        )

    # --------------------------------------------------------------------------------------------- part of interface.Group

    @property
    def state(self) -> str:
        """Return the name of the group's state."""
        return (ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY).value

    def validate_offset_commit(
        self,
        member_id: str,  # noqa: ARG002  a share group commits no offsets
        group_instance_id: str | None,  # noqa: ARG002
        generation: int,  # noqa: ARG002
        *,
        is_transactional: bool,  # noqa: ARG002
        version: int,  # noqa: ARG002
    ) -> ErrorCode:
        """Return GROUP_ID_NOT_FOUND: a share group has no committed offsets."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def permits_late_commit(
        self,
        member_id: str,  # noqa: ARG002  a share group commits no offsets
        generation: int,  # noqa: ARG002
        partitions: Iterable[tuple[UUID | None, int]],  # noqa: ARG002
    ) -> bool:
        """Return False."""
        return False

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int, at_offset: int) -> ErrorCode:  # noqa: ARG002
        """Return NONE: the answer is that a share group has no committed offsets."""
        return ErrorCode.NONE

    def validate_offset_delete(self) -> ErrorCode:
        """Return GROUP_ID_NOT_FOUND: a share group has no committed offsets."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return topic in self.name_counts

    def offsets_expire_since_ms(self) -> int | None:
        """Return None: there are no offsets that could expire."""
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group."""
        return group_tombstones(self.group_id, list(self.members))

    # --------------------------------------------------------------------------------------------------------- replay

    def replay_member(self, member: ShareGroupMember) -> None:
        """Add or update a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)

    def replay_removed(self, member_id: str) -> None:
        """Remove a member."""
        old = self.members.pop(member_id)
        if old is not None:
            self._count(old, None)

    def target_of_record(self, value: ShareGroupTargetAssignmentMemberValue) -> Partitions:
        """Return the target assignment of a record."""
        return with_sets(value.topic_partitions)

    def replay_other(
        self,
        key: ShareGroupStatePartitionMetadataKey,  # noqa: ARG002  there is one such record
        value: ShareGroupStatePartitionMetadataValue | None,
    ) -> None:
        """Set or remove the share partitions by the life of their state."""
        self.state_partitions.set(None if value is None else from_record(value, self._now_ms()))

    def _count(self, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        names = (frozenset() if each is None else each.subscribed_topic_names for each in (old, new))
        adjust_counts(self.name_counts, *names)

    def member_or_new(self, member_id: str) -> ShareGroupMember:
        """Return the member, or a blank one before its first heartbeat."""
        return self.members.get(member_id) or ShareGroupMember(member_id=member_id)

    def target_of(self, member_id: str) -> Partitions:
        """Return a member's target assignment."""
        return self.targets.get(member_id) or NOTHING
