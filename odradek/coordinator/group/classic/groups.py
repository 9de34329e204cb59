"""The classic groups of one shard, with the clock, timers, configs, reports, ids and counters for deciding on them.

Also their stored form, a ``GroupMetadataValue``, and their members' sessions: a member that sends no request for its session
timeout has failed.

Heartbeats are the most frequent requests, so a heartbeat does not touch the timer. It moves the member's deadline. A timer that
fires before the deadline is set again for the rest. The timer is also set again when the deadline becomes earlier.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from odradek.coordinator.group.classic.decision import join_error, sync_error
from odradek.coordinator.group.classic.group import GROUP_TYPE, ClassicGroup
from odradek.coordinator.group.classic.member import Member
from odradek.coordinator.group.classic.states import GroupCounters, GroupState
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.coordinator.group.config import GroupConfig, GroupReports
    from odradek.coordinator.group.interface import Group
    from odradek.coordinator.group.registry import GroupRegistry
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.timing.reply import Reply

# The session timeout of a new member with a held JoinGroup: without its member id, the client can neither heartbeat nor leave.
# Kafka's constant, for which it has no config.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

NOTHING: CoordinatorResult[None] = CoordinatorResult((), None)


class Sessions:
    """The deadlines of one shard's members. ``expire`` handles a failed member, ``find`` looks one up."""

    __slots__ = ("_expire", "_find", "_monotonic_ms", "_timers")

    def __init__(
        self,
        timers: ShardContext,
        find: Callable[[str, str], Member | None],
        expire: Callable[[str, str], CoordinatorResult[None]],
    ) -> None:
        self._timers = timers
        self._monotonic_ms = timers.clock.monotonic_ms
        self._find = find
        self._expire = expire

    def touch(self, group: ClassicGroup, member: Member) -> None:
        """Restart the member's session. HOT: reads the clock once and mostly leaves the timer alone."""
        member.session_deadline_ms = deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        if deadline_ms < member.timer_deadline_ms:
            self._arm(group.group_id, member)

    def begin(self, group: ClassicGroup, member: Member) -> None:
        """Begin the session of a member that has no timer: it is new, or has a new member id."""
        member.session_deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        self._arm(group.group_id, member)

    def begin_join(self, group: ClassicGroup, member: Member, pending_deadline_ms: float | None) -> None:
        """Begin the longer session of a new member whose first JoinGroup is held.

        ``pending_deadline_ms`` is the deadline of a pending member, whose timer stays; None if the member was not pending.
        """
        member.session_deadline_ms = self._monotonic_ms() + NEW_MEMBER_JOIN_TIMEOUT_MS
        if pending_deadline_ms is None or pending_deadline_ms > member.session_deadline_ms:
            self._arm(group.group_id, member)
        else:
            member.timer_deadline_ms = pending_deadline_ms

    def begin_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """Begin the wait for a pending member, which must join with its new member id within a session timeout."""
        group.pending_joins[member_id] = self._monotonic_ms() + session_timeout_ms
        self._schedule(group.group_id, member_id, session_timeout_ms)

    def end(self, group: ClassicGroup, member_id: str) -> None:
        """Drop the timer of a member that is removed or has a new member id."""
        self._timers.cancel(_key(group.group_id, member_id))

    def _arm(self, group_id: str, member: Member) -> None:
        member_id = member.member_id
        member.timer_deadline_ms = member.session_deadline_ms
        delay_ms = max(0.0, member.session_deadline_ms - self._monotonic_ms())
        self._schedule(group_id, member_id, delay_ms)

    def _schedule(self, group_id: str, member_id: str, delay_ms: float) -> None:
        self._timers.schedule(_key(group_id, member_id), delay_ms, partial(self._fire, group_id, member_id), retry=False)

    def _fire(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        member = self._find(group_id, member_id)
        if member is not None:
            member.timer_deadline_ms = inf
            if self._monotonic_ms() < member.session_deadline_ms:
                self._arm(group_id, member)
                return NOTHING
        return self._expire(group_id, member_id)


def _key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("session", group_id, member_id)


# The stored form of a simple group: it has committed offsets, but no record of its own.
SIMPLE_GROUP: Final = GroupMetadataValue("", 0, None, None)


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of the current generation, with ``assignments`` by member id. A missing member has no partitions."""
    members = tuple(
        MemberMetadata(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol),
            assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )
    value = GroupMetadataValue(
        group.protocol_type or "", group.generation, group.protocol, group.leader, group.state_since_ms, members
    )
    return CoordinatorRecord(GroupMetadataKey(group.group_id), value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the record of a new group. Its joining members are not stored until it has a generation."""
    return CoordinatorRecord(
        GroupMetadataKey(group.group_id), SIMPLE_GROUP._replace(current_state_timestamp_ms=group.state_since_ms)
    )


def restored_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the live group of ``value``: Stable if it has members, otherwise Empty.

    Only the members' protocol in use is stored, so a member that joins again with other protocols counts as changed.
    """
    state = GroupState.STABLE if value.members else GroupState.EMPTY
    group = ClassicGroup(group_id, state, value.generation, value.current_state_timestamp_ms)
    for stored in value.members:
        group.add(_restored_member(stored, value.protocol or ""), value.protocol_type)
    group.protocol_type = value.protocol_type or None
    group.protocol = (value.protocol or "") if value.members else value.protocol
    if value.leader in group.members or not value.members:
        group.leader = value.leader
    group.settled_members = frozenset(group.members)
    group.refresh_subscribed_topics()
    return group


def _restored_member(stored: MemberMetadata, protocol: str) -> Member:
    return Member(
        member_id=stored.member_id,
        group_instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        # Before version 1 of the value, the session timeout was also the rebalance timeout.
        rebalance_timeout_ms=stored.session_timeout_ms if stored.rebalance_timeout_ms == -1 else stored.rebalance_timeout_ms,
        session_timeout_ms=stored.session_timeout_ms,
        protocols=((protocol, stored.subscription),),
        assignment=stored.assignment,
    )


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

    def is_kept_out(self, group_id: str) -> bool:
        """Return whether a group of another kind has the id, and makes no way for a classic group.

        It does so once it has no members. A share group never does: its progress is with the share coordinator.
        """
        group = self.registry.find(group_id)
        if group is None or isinstance(group, ClassicGroup):
            return False
        return group.group_type == "share" or not group.is_empty or not self.is_stored(group_id)

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

    def view(self, group_id: str, value: object) -> ClassicGroup:
        """Return the group of a GroupMetadataValue, to be read only."""
        return restored_group(group_id, cast("GroupMetadataValue", value))

    def restore(self, group_id: str, value: object) -> ClassicGroup:
        """Restore a group from its GroupMetadataValue."""
        group = self.view(group_id, value)
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
