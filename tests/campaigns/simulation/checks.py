"""Whether a group is consistent in the shard's memory: its state, its counts and its deadlines.

state           follows the one before according to the table counts          of waiting members, of a protocol's supporters, of
static members: equal to those of the members waits           for a JoinGroup response: while the group prepares a rebalance, or
the member's new id is written;
                for a SyncGroup response: while the group completes a rebalance
deadlines       for each member that does not wait, each pending member, each wait; and no others
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.coordinator.group.classic.states import GroupState
from tests.campaigns.simulation.history import follows
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard

_COUNTS = "counts are those of the members"
_PREPARING = GroupState.PREPARING_REBALANCE
_COMPLETING = GroupState.COMPLETING_REBALANCE

# Kafka's table from ClassicGroupState, written down a second time: the product's own table is under test.
_TRANSITIONS = {
    (GroupState.DEAD, GroupState.EMPTY),  # created, or loaded
    (GroupState.DEAD, GroupState.STABLE),  # loaded
    (GroupState.EMPTY, _PREPARING),
    (GroupState.STABLE, _PREPARING),
    (_COMPLETING, _PREPARING),
    (_PREPARING, _COMPLETING),
    (_PREPARING, GroupState.EMPTY),
    (_COMPLETING, GroupState.STABLE),
}


class GroupChecks:
    """The checks of one shard, from a load to the next unload."""

    def __init__(self) -> None:
        self._generations: dict[ClassicGroup, int] = {}

    def check(self, hosted: HostedShard[GroupShard]) -> None:
        """Check all groups and all deadlines of the shard. Raises Violation."""
        if not hosted.committed_offset <= hosted.written_offset <= hosted.next_offset:
            offsets = f"{hosted.committed_offset}, {hosted.written_offset}, {hosted.next_offset}"
            raise Violation("committed <= written <= next offset", offsets)
        for group in hosted.shard.groups.live.values():
            self.check_group(hosted, group)
        _check_owners(hosted)

    def check_group(self, hosted: HostedShard[GroupShard], group: ClassicGroup) -> None:
        """Check one group. Raises Violation."""
        where = f"{group.group_id} in {group.state}, generation {group.generation}"
        if (group.previous_state, group.state) not in _TRANSITIONS:
            raise Violation("states follow the table", f"{where} came from {group.previous_state}")
        latest = self._generations.get(group, group.generation)
        if group.generation != latest and not follows(latest, group.generation):
            raise Violation("generations only grow", f"{where} had generation {latest}")
        self._generations[group] = group.generation
        _check_counts(group, where)
        if group.state is _COMPLETING:
            _check_vote(group, where)
        _check_waits(group, where)
        _check_deadlines(hosted, group, where)


def _check_counts(group: ClassicGroup, where: str) -> None:
    members = group.members
    waiting_joins = 0
    supporters: dict[str, int] = {}
    static_members: dict[str, str] = {}
    for member_id, member in members.items():
        waiting_joins += member.waiting_join is not None
        for name, _ in member.protocols:
            supporters[name] = supporters.get(name, 0) + 1
        if member.group_instance_id is not None:
            static_members[member.group_instance_id] = member_id
        if member.member_id != member_id:
            raise Violation(_COUNTS, f"{where}: {member_id} is kept of {member.member_id}")
    if (waiting_joins, supporters, static_members) != (group.waiting_joins, group.supporters, group.static_members):
        kept = f"{group.waiting_joins} waiting joins, {group.supporters}, {group.static_members}"
        raise Violation(_COUNTS, f"{where} has {kept}, and there are {waiting_joins}, {supporters}, {static_members}")
    if (group.leader is None) != (not members) or (members and group.leader not in members):
        raise Violation("one leader a generation", f"{where} is led by {group.leader}, with members {list(members)}")
    if group.pending_joins.keys() & members.keys() or not group.pending_syncs.keys() <= members.keys():
        pending = f"pending {list(group.pending_joins)} and {list(group.pending_syncs)}"
        raise Violation(_COUNTS, f"{where}: {pending}, with members {list(members)}")
    if members and len(members) not in supporters.values():
        raise Violation("members have a protocol in common", f"{where}: {supporters}")


def _check_vote(group: ClassicGroup, where: str) -> None:
    """All members support the protocol, and no other such protocol is preferred by more of them."""
    members = group.members.values()
    common = set.intersection(*({name for name, _ in member.protocols} for member in members))
    votes: Counter[str | None] = Counter(next(name for name, _ in member.protocols if name in common) for member in members)
    if group.protocol not in votes or votes[group.protocol] < max(votes.values()):
        raise Violation("members have a protocol in common", f"{where} has chosen {group.protocol} by {votes}")


def _check_waits(group: ClassicGroup, where: str) -> None:
    state = group.state
    if (state is GroupState.EMPTY and group.members) or (state in (GroupState.STABLE, _COMPLETING) and not group.members):
        raise Violation("states follow the table", f"{where} has {len(group.members)} members")
    for member in group.members.values():
        may_wait = state is _PREPARING or (state is GroupState.STABLE and member.is_static)
        if member.waiting_join is not None and not may_wait:
            raise Violation("nobody waits for ever", f"{where}: the JoinGroup of {member.member_id} is not answered")
        if member.waiting_sync is not None and state is not _COMPLETING:
            raise Violation("nobody waits for ever", f"{where}: the SyncGroup of {member.member_id} is not answered")
    if state in (GroupState.EMPTY, _PREPARING) and group.pending_syncs:
        raise Violation("nobody waits for ever", f"{where} still waits for SyncGroups")


def _check_deadlines(hosted: HostedShard[GroupShard], group: ClassicGroup, where: str) -> None:
    tasks = hosted.context._tasks
    group_id = group.group_id
    for member_id in (*group.members, *group.pending_joins):
        member = group.members.get(member_id)
        if ("session", group_id, member_id) not in tasks and (member is None or not member.may_be_silent):
            raise Violation("a member's silence is noticed", f"{where}: {member_id} has no deadline, and does not wait for us")
    for kind, is_due in (("join", group.state is _PREPARING), ("sync", bool(group.pending_syncs))):
        if is_due != ((kind, group_id) in tasks):
            what = "has no deadline" if is_due else "is over, and its deadline is left"
            raise Violation("each wait has a deadline, and no other", f"{where}: the wait for {kind}s {what}")


def _check_owners(hosted: HostedShard[GroupShard]) -> None:
    """No deadline of a removed member or group is left."""
    live = hosted.shard.groups.live
    for key, task in hosted.context._tasks.items():
        if not task.is_pending:
            raise Violation("no deadline is left of who is gone", f"{key} is kept, and cancelled")
        if not isinstance(key, tuple):
            continue
        group = live.get(key[1])
        is_of_member = len(key) == 3
        if group is None or (is_of_member and key[2] not in group.members and key[2] not in group.pending_joins):
            raise Violation("no deadline is left of who is gone", f"{key}")
