"""The classic groups of one shard, with the clock, timers, configs, reports, ids and counters for deciding on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from odradek.coordinator.group.classic.decision import join_error, sync_error
from odradek.coordinator.group.classic.group import GROUP_TYPE, ClassicGroup
from odradek.coordinator.group.classic.rebalance_notes import GroupCounters
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.classic.stored import SIMPLE_GROUP, restored_group
from odradek.protocol.coordinator_records import GroupMetadataValue
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.coordinator.group.classic.member import Member
    from odradek.coordinator.group.classic.sessions import Sessions
    from odradek.coordinator.group.config import GroupConfig, GroupReports
    from odradek.coordinator.group.interface import Group
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.timing.reply import Reply


class ClassicGroups:
    """Owner of the classic groups in the shard's ``registry``: the kind of group that OffsetCommit creates. Loop thread only.

    Sessions look members up here. An expired session begins a rebalance.
    """

    __slots__ = ("_live", "_stored", "clock", "config", "counters", "new_id", "registry", "reports", "sessions", "timers")

    def __init__(
        self,
        registry: GroupRegistry,
        *,
        timers: ShardContext,
        config: Callable[[], GroupConfig],
        reports: GroupReports,
        new_id: Callable[[], str],
        make_sessions: Callable[[ClassicGroups], Sessions],
    ) -> None:
        self.registry = registry
        self._stored = registry.stored
        self._live = registry.live
        self.clock = timers.clock
        self.timers = timers
        self.config = config
        self.reports = reports
        self.new_id = new_id
        self.counters = GroupCounters()
        self.sessions: Final = make_sessions(self)
        registry.add_kind(GROUP_TYPE, GroupMetadataValue, self)

    # ---------------------------------------------------------------------------------------------------- persistent

    def replay(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Apply a GroupMetadata record; None is a tombstone.

        A group is deleted only while no member waits for an answer. The ids of its pending members are dropped.
        """
        if value is not None:
            self._stored[group_id] = value
            return
        if type(self._stored.get(group_id)) is not GroupMetadataValue:
            return
        self._stored.pop(group_id)
        group = self._live.pop(group_id, None)
        if isinstance(group, ClassicGroup):
            for member_id in group.pending_joins:
                self.sessions.end(group, member_id)
            group.transition_to(GroupState.DEAD, self.clock.now_ms())

    def replay_offset_of(self, group_id: str) -> None:
        """Note an offset stored for this group. If no group has this id, it becomes a simple group. HOT."""
        if group_id not in self._stored:
            self._stored[group_id] = SIMPLE_GROUP

    # ----------------------------------------------------------------------------------------------------------- live

    def find(self, group_id: str) -> ClassicGroup | None:
        """Return the live classic group; None if there is none, or the group is of another kind. HOT."""
        group = self._live.get(group_id)
        if group is None:
            group = self.registry.find(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def is_of_other_kind(self, group_id: str) -> bool:
        """Return whether ``group_id`` belongs to a group that is not a classic one."""
        group = self.registry.find(group_id)
        return group is not None and not isinstance(group, ClassicGroup)

    def makes_way(self, group_id: str) -> bool:
        """Return whether the group of another kind has no members, so that a classic group may take its place."""
        group = self.registry.find_stored(group_id)
        return group is not None and group.is_empty

    def tombstones_of_other(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the records that delete a group of another kind that makes way; its offsets stay."""
        group = self.registry.find_stored(group_id)
        return [] if group is None else group.tombstones()

    def is_stored(self, group_id: str) -> bool:
        """Return whether the log has the group."""
        return group_id in self._stored

    def each(self) -> Iterator[ClassicGroup]:
        """Iterate over the live classic groups."""
        for group in self._live.values():
            if isinstance(group, ClassicGroup):
                yield group

    def note_alive(self, group: Group, member_id: str) -> None:
        """Restart the session of a member that commits. HOT."""
        if isinstance(group, ClassicGroup):
            member = group.members.get(member_id)
            if member is not None:
                self.sessions.touch(group, member)

    def member(self, group_id: str, member_id: str) -> Member | None:
        """Return the live member, or None."""
        group = self._live.get(group_id)
        return group.members.get(member_id) if isinstance(group, ClassicGroup) else None

    def is_live(self, group: ClassicGroup) -> bool:
        """Return whether ``group`` is still the live group under its id."""
        return self.timers.is_open and self._live.get(group.group_id) is group

    def create(self, group_id: str) -> ClassicGroup:
        """Create a live group. The caller appends its record."""
        group = self._live[group_id] = ClassicGroup(group_id, GroupState.EMPTY, 0, self.clock.now_ms())
        return group

    def adopt(self, group: ClassicGroup) -> None:
        """Make a group of another kind live, and begin its members' sessions. The caller appends its record."""
        self._live[group.group_id] = group
        for member in group.members.values():
            self.sessions.begin(group, member)

    def discard(self, group: ClassicGroup) -> None:
        """Forget a new group whose record could not be appended."""
        if self._live.get(group.group_id) is group:
            del self._live[group.group_id]

    def held_requests(self) -> tuple[int, int]:
        """Return the numbers of held JoinGroups and held SyncGroups."""
        joins = syncs = 0
        for group in self.each():
            for member in group.members.values():
                joins += member.waiting_join is not None
                syncs += member.waiting_sync is not None
        return joins, syncs

    # ----------------------------------------------------------------------------------------------- load and unload

    def restore(self, group_id: str, value: object) -> ClassicGroup:
        """Restore a group from its GroupMetadataValue."""
        group = restored_group(group_id, cast("GroupMetadataValue", value))
        for member in group.members.values():
            self.sessions.begin(group, member)
        return group

    def unload(self) -> list[tuple[Reply[Any], object]]:
        """End all groups. Return the replies they hold, each with NOT_COORDINATOR. The runtime drops the deadlines."""
        responses: list[tuple[Reply[Any], object]] = []
        for group in self.each():
            for member in group.members.values():
                join = group.release_join(member)
                if join is not None:
                    responses.append((join, join_error(ErrorCode.NOT_COORDINATOR, member.member_id)))
                if member.waiting_sync is not None:
                    responses.append((member.waiting_sync, sync_error(ErrorCode.NOT_COORDINATOR)))
                    member.waiting_sync = None
            group.transition_to(GroupState.DEAD, self.clock.now_ms())
        return responses
