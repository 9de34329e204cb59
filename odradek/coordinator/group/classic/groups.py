"""The classic groups of one shard, and what deciding on them needs: clock, timers, configs, the log, new ids, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.rebalance_notes import GroupCounters
from odradek.coordinator.group.classic.responses import join_error, sync_error
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.classic.stored import SIMPLE_GROUP, restored_group
from odradek.coordinator.runtime.timeline import TimelineDict
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from odradek.coordinator.group.classic.member import Member
    from odradek.coordinator.group.classic.sessions import Sessions
    from odradek.coordinator.group.config import GroupConfig, GroupReports
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.protocol.coordinator_records import GroupMetadataValue
    from odradek.timing.reply import Reply


class ClassicGroups:
    """Owner of the stored and the live state. Loop thread only.

    ``stored`` is persistent: only ``replay`` changes it, and it goes back when an append fails. ``live`` holds the same groups as
    they are now. A live group that is not stored is either about to be, or what was to be written of it never was: for those who
    list, describe or delete groups it does not exist.
    """

    __slots__ = ("_is_loaded", "clock", "config", "counters", "live", "new_id", "reports", "sessions", "stored", "timers")

    def __init__(
        self,
        *,
        timers: ShardContext,
        config: Callable[[], GroupConfig],
        reports: GroupReports,
        new_id: Callable[[], str],
    ) -> None:
        self.stored: TimelineDict[str, GroupMetadataValue] = TimelineDict(timers.snapshots)
        self.live: dict[str, ClassicGroup] = {}
        self.clock = timers.clock
        self.timers = timers
        self.config = config
        self.reports = reports
        self.new_id = new_id
        self.counters = GroupCounters()
        # Set by who puts the parts together: sessions look members up here, and expire them by a rebalance.
        self.sessions: Sessions
        self._is_loaded = False

    # ---------------------------------------------------------------------------------------------------- persistent

    def replay(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Apply a GroupMetadata record; None is a tombstone, which finds nobody waiting in a group that it deletes.

        Who was given a member id to come back with is forgotten along with the group.
        """
        if value is not None:
            self.stored[group_id] = value
            return
        self.stored.pop(group_id)
        group = self.live.pop(group_id, None)
        if group is not None:
            for member_id in group.pending_joins:
                self.sessions.end(group, member_id)
            group.transition_to(GroupState.DEAD, self.clock.now_ms())

    def replay_offset_of(self, group_id: str) -> None:
        """An offset is stored for this group: where the group is not there, it is a simple one from now on."""
        if group_id not in self.stored:
            self.stored[group_id] = SIMPLE_GROUP

    # ----------------------------------------------------------------------------------------------------------- live

    def find(self, group_id: str) -> ClassicGroup | None:
        """The group as it is now, or None."""
        group = self.live.get(group_id)
        if group is None and self._is_loaded:
            value = self.stored.get(group_id)
            if value is not None:
                # Made by an offset commit, or deleted by an append that failed.
                group = self._restore(group_id, value)
        return group

    def stored_ids(self) -> Iterable[str]:
        """The groups that the log has."""
        return self.stored.keys()

    def note_alive(self, group_id: str, member_id: str) -> None:
        """A member has committed: its session begins anew. HOT."""
        group = self.live.get(group_id)
        if group is not None:
            member = group.members.get(member_id)
            if member is not None:
                self.sessions.touch(group, member)

    def member(self, group_id: str, member_id: str) -> Member | None:
        """The member as it is now, or None."""
        group = self.live.get(group_id)
        return None if group is None else group.members.get(member_id)

    def is_live(self, group: ClassicGroup) -> bool:
        """Whether ``group`` is still the one that goes by its name here."""
        return self.timers.is_open and self.live.get(group.group_id) is group

    def create(self, group_id: str) -> ClassicGroup:
        """A group that nobody has heard of; whoever asks for it sees to it that it is written."""
        group = self.live[group_id] = ClassicGroup(group_id, GroupState.EMPTY, 0, self.clock.now_ms())
        return group

    def discard(self, group: ClassicGroup) -> None:
        """Forget a group of which nothing could be written."""
        if self.live.get(group.group_id) is group:
            del self.live[group.group_id]

    def listed(self, committed_offset: int) -> Iterator[ClassicGroup]:
        """The groups that exist at ``committed_offset`` of the log, each as it is now."""
        for group_id, _ in list(self.stored.items_at(committed_offset)):
            group = self.find(group_id)
            if group is not None:
                yield group

    def described(self, group_id: str, committed_offset: int) -> ClassicGroup | None:
        """The group as it is now, None where it does not exist at ``committed_offset``."""
        return None if self.stored.get_at(group_id, committed_offset) is None else self.find(group_id)

    # ----------------------------------------------------------------------------------------------- load and unload

    def load(self) -> list[ClassicGroup]:
        """Bring to life what was replayed, and return it. The members' sessions begin now."""
        self._is_loaded = True
        return [self._restore(group_id, value) for group_id, value in self.stored.items()]

    def unload(self) -> list[tuple[Reply[Any], object]]:
        """Let go of the groups; NOT_COORDINATOR for each reply that they hold. Timers are dropped by the runtime."""
        responses: list[tuple[Reply[Any], object]] = []
        for group in self.live.values():
            for member in group.members.values():
                join = group.release_join(member)
                if join is not None:
                    responses.append((join, join_error(ErrorCode.NOT_COORDINATOR, member.member_id)))
                if member.waiting_sync is not None:
                    responses.append((member.waiting_sync, sync_error(ErrorCode.NOT_COORDINATOR)))
                    member.waiting_sync = None
            group.transition_to(GroupState.DEAD, self.clock.now_ms())
        self.live.clear()
        return responses

    def _restore(self, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = self.live[group_id] = restored_group(group_id, value)
        for member in group.members.values():
            self.sessions.begin(group, member)
        return group
