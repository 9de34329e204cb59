"""Invariants of a group at any moment, and reasons for and against a request as it arrives.

state        follows the one before according to the table
counts       of waiting members, of a protocol's supporters, of static members: equal to those of the members
waits        for a JoinGroup response: while the group prepares a rebalance, or the member's new id is written;
             for a SyncGroup response: while the group completes a rebalance
deadlines    for each member that does not wait, each pending member, each wait, and each member of the consumer protocol, for its
             silence and for what it has to give up; and no others
owners       of a partition there is one at most among the members that are in the group, as they themselves understand it
released     what such a member owns is among what the group says that it has, or has yet to give up
served       who is in the group, in its generation or epoch, under its present member id; who is not, is refused. A heartbeat or
             a SyncGroup unless its group prepares a rebalance, a commit unless the generation's assignment is pending. A commit
             of an older epoch of a member is taken for partitions that the member has had since then
known        a member that the log has is not told that it, or its group, or its epoch is unknown
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.member import MemberState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.groups.history import follows
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.groups.broker import Topics
    from tests.campaigns.simulation.groups.history import Records

CHECKED_APIS = frozenset({ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.CONSUMER_GROUP_HEARTBEAT})
_NOT_IN = {
    ApiKey.HEARTBEAT: GroupState.PREPARING_REBALANCE,
    ApiKey.SYNC_GROUP: GroupState.PREPARING_REBALANCE,
    ApiKey.OFFSET_COMMIT: GroupState.COMPLETING_REBALANCE,
}
OWNED_TWICE = "no partition is owned by two"
NOT_RELEASED = "what a member owns is known to be its own"
DEADLINES = "a member's silence is noticed"

_NOTHING: dict[int, int] = {}
_COUNTS = "counts are those of the members"
_PREPARING = GroupState.PREPARING_REBALANCE
_COMPLETING = GroupState.COMPLETING_REBALANCE
_CLASSIC_TASKS = frozenset({"session", "join", "sync"})

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
        """Check the shard's offsets, and that no deadline is left. Raises Violation."""
        if not hosted.committed_offset <= hosted.written_offset <= hosted.next_offset:
            offsets = f"{hosted.committed_offset}, {hosted.written_offset}, {hosted.next_offset}"
            raise Violation("committed <= written <= next offset", offsets)
        _check_left(hosted)

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


def _check_left(hosted: HostedShard[GroupShard]) -> None:
    """No deadline of a removed member or group is left."""
    live = hosted.shard.groups.live
    for key, task in hosted.context._tasks.items():
        if not task.is_pending:
            raise Violation("no deadline is left of who is gone", f"{key} is kept, and cancelled")
        if not isinstance(key, tuple) or key[0] not in _CLASSIC_TASKS:
            continue
        group = live.get(key[1])
        is_of_member = len(key) == 3
        if not isinstance(group, ClassicGroup) or (
            is_of_member and key[2] not in group.members and key[2] not in group.pending_joins
        ):
            raise Violation("no deadline is left of who is gone", f"{key}")


def check_owners(group: Any, members: list[Any], topics: Topics) -> None:
    """Of the processes that run, those that are in the group own no partition of a topic twice. Raises Violation."""
    owners: dict[tuple[UUID, int], Any] = {}
    for process in members:
        member = group.members.get(process.member_id)
        if member is None or (not isinstance(group, ConsumerGroup) and process.generation != group.generation):
            continue
        for partition in process.partitions:
            if partition[0] not in topics.names:
                continue
            other = owners.setdefault(partition, process)
            if other is not process:
                name = f"{topics.names[partition[0]]}-{partition[1]}"
                raise Violation(OWNED_TWICE, f"{name} is owned by {other} and {process}, of {group}")
            if isinstance(group, ConsumerGroup):
                _check_known(group, member, process, partition)


def _check_known(group: ConsumerGroup, member: Any, process: Any, partition: tuple[UUID, int]) -> None:
    topic_id, index = partition
    if index not in member.assigned.get(topic_id, _NOTHING) and index not in member.pending_revocation.get(topic_id, _NOTHING):
        what = f"{process} owns {partition}, and {group} says {member}"
        raise Violation(NOT_RELEASED, what)


def check_deadlines(hosted: HostedShard[GroupShard], group: ConsumerGroup) -> None:
    """Raises Violation."""
    tasks = hosted.context._tasks
    # A classic member's session begins once it is told that it has joined.
    is_settled = hosted.committed_offset == hosted.next_offset
    for member_id, member in group.members.items():
        is_due = member.classic is None or is_settled
        if is_due and ("consumer-session", group.group_id, member_id) not in tasks:
            raise Violation(DEADLINES, f"{member_id} of {group} has no session")
        # One that is away for a while has nothing to revoke any more, and its session.
        is_to_revoke = member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS and member.member_epoch >= 0
        if is_to_revoke and ("consumer-revocation", group.group_id, member_id) not in tasks:
            raise Violation(DEADLINES, f"{member_id} of {group} may keep what it has to give up")


def objection_to(api_key: ApiKey, request: Any, hosted: HostedShard[GroupShard] | None, topics: Topics) -> str:
    """Reasons against granting a request; empty where there are none, or it is decided later."""
    if hosted is None or hosted._is_deciding or api_key not in CHECKED_APIS:
        return ""
    group = hosted.shard.groups.find(request.group_id)
    if api_key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return _objection_to_heartbeat(group, request)
    if not isinstance(group, ConsumerGroup):
        return _objection_in_classic_group(api_key, request, hosted)
    if api_key is ApiKey.OFFSET_COMMIT:
        return _objection_to_commit(group, request, topics)
    member = group.members.get(request.member_id)
    if member is None or member.classic is None:
        return "it is no classic member"
    return "" if request.generation_id == member.member_epoch else f"its epoch is {member.member_epoch}"


def _objection_to_heartbeat(group: Any, request: Any) -> str:
    if request.member_epoch == 0:
        return ""
    member = group.members.get(request.member_id) if isinstance(group, ConsumerGroup) else None
    if member is None:
        return "it is not a member"
    if request.member_epoch < 0 or request.member_epoch == member.member_epoch:
        return ""
    return "" if request.member_epoch == member.previous_member_epoch else f"its epoch is {member.member_epoch}"


def _objection_to_commit(group: ConsumerGroup, request: Any, topics: Topics) -> str:
    epoch = request.generation_id_or_member_epoch
    if epoch < 0:
        return "the group has members" if group.members else ""
    member = group.members.get(request.member_id)
    if member is None:
        return "it is not a member"
    if epoch == member.member_epoch:
        return ""
    if epoch > member.member_epoch:
        return f"its epoch is {member.member_epoch}"
    for topic in request.topics:
        topic_id = topics.ids.get(topic.name) if topic.name else topic.topic_id
        owned = {**member.pending_revocation.get(topic_id, {}), **member.assigned.get(topic_id, {})}
        if any(owned.get(each.partition_index, epoch + 1) > epoch for each in topic.partitions):
            return f"its epoch is {member.member_epoch}, and it has {owned} of {topic_id}"
    return ""


def objection_to_epoch(group: Any, member_id: str | None, epoch: int, committed_offset: int) -> str:
    """Reasons against a member's OffsetFetch, which is that of the present or of what is committed."""
    if not isinstance(group, ConsumerGroup):
        return ""
    found = (group.members.get(member_id or ""), group.members.get_at(member_id or "", committed_offset))
    epochs = [member.member_epoch for member in found if member is not None]
    if not epochs:
        return "it is not a member"
    return "" if epoch in epochs else f"its epoch is {epochs[0]}"


def untrue_refusals(api_key: ApiKey, request: Any, hosted: HostedShard[GroupShard] | None, said: Records) -> frozenset[int]:
    """The errors that a request must not be answered with, going by what the log says, where nothing waits to be appended."""
    if hosted is None or hosted._is_deciding or hosted.has_open_batch or said.epoch is None:
        return frozenset()
    member = said.members.get(getattr(request, "member_id", None))
    assigned = said.assignments.get(getattr(request, "member_id", None))
    if api_key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        untrue = {ErrorCode.GROUP_ID_NOT_FOUND}
        if member is not None:
            untrue.add(ErrorCode.UNKNOWN_MEMBER_ID)
        if assigned is not None and assigned.member_epoch == request.member_epoch:
            untrue.add(ErrorCode.FENCED_MEMBER_EPOCH)
        return frozenset(map(int, untrue))
    if (
        api_key in (ApiKey.HEARTBEAT, ApiKey.SYNC_GROUP)
        and member is not None
        and member.classic_member_metadata is not None
        and assigned is not None
    ):
        untrue = {ErrorCode.UNKNOWN_MEMBER_ID}
        if assigned.member_epoch == request.generation_id:
            untrue.add(ErrorCode.ILLEGAL_GENERATION)
        return frozenset(map(int, untrue))
    return frozenset()


def _objection_in_classic_group(api_key: ApiKey, request: Any, hosted: HostedShard[GroupShard]) -> str:
    group = hosted.shard.classic.find(request.group_id)
    is_commit = api_key is ApiKey.OFFSET_COMMIT
    generation = request.generation_id_or_member_epoch if is_commit else request.generation_id
    if is_commit and generation < 0:
        return "the group has members" if group is not None and group.members else ""
    if group is None or request.member_id not in group.members:
        return "it is not a member"
    instance_id = request.group_instance_id
    if instance_id is not None and group.static_members.get(instance_id) != request.member_id:
        return "it was replaced"
    if generation != group.generation:
        return f"the generation is {group.generation}"
    return f"the group is in {group.state}" if group.state is _NOT_IN[api_key] else ""
