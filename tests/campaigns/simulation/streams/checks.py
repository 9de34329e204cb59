"""Invariants of a streams group at any moment, and reasons for and against a request as it arrives.

owners       no two members of the group run an active task, as they themselves understand it
released     the group knows that a member has the active tasks it runs, or has yet to give them up
roles        a process has a task in one role only, unless one member changes its role
holders      the holders of each task are the members that have it
deadlines    each member has one for its silence, and one for tasks it has to give up
served       a request is refused if its member is not in the group or not in its epoch. A member that joins with another topology
             is refused, too. A commit of an older epoch is taken for tasks that the member has had since then
known        no member in the log is told that it, its group or its epoch is unknown
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH
from odradek.coordinator.group.streams.group import StreamsGroup
from odradek.coordinator.group.streams.member import MemberState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.groups.checks import DEADLINES, NOT_RELEASED, OWNED_TWICE
from tests.campaigns.simulation.streams.applications import shape_of
from tests.campaigns.simulation.streams.member import ACTIVE
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.group.streams.member import OwnedTasks, StreamsGroupMember
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.groups.broker import Topics
    from tests.campaigns.simulation.groups.history import Records
    from tests.campaigns.simulation.streams.applications import Task
    from tests.campaigns.simulation.streams.member import StreamsMember

ROLES = "a process has a task in one role"
HOLDERS = "the holders of a task are the members that have it"


def tasks_of(by_subtopology: Mapping[str, Iterable[int]]) -> Iterator[Task]:
    """Return subtopology ids with partitions."""
    return ((subtopology_id, index) for subtopology_id, indexes in by_subtopology.items() for index in indexes)


def check_owners(group: StreamsGroup, members: Iterable[StreamsMember]) -> None:
    """Check that no two running members of the group have an active task. Raises Violation."""
    owners: dict[Task, StreamsMember] = {}
    for each in members:
        member = group.members.get(each.member_id)
        if member is None:
            continue
        theirs = {*tasks_of(member.assigned.active), *tasks_of(member.pending_revocation.active)}
        for role, subtopology_id, index in each.held:
            if role != ACTIVE:
                continue
            task = (subtopology_id, index)
            other = owners.setdefault(task, each)
            if other is not each:
                raise Violation(OWNED_TWICE, f"{task} is run by {other} and {each}, of {group}")
            if task not in theirs:
                raise Violation(NOT_RELEASED, f"{each} runs {task}, and {group} says {member}")


def check_deadlines(hosted: HostedShard[GroupShard], group: StreamsGroup, members: Mapping[str, StreamsGroupMember]) -> None:
    """Raises Violation."""
    tasks = hosted.context._tasks
    for member_id, member in members.items():
        if ("streams-session", group.group_id, member_id) not in tasks:
            raise Violation(DEADLINES, f"{member_id} of {group} has no session")
        # One that is away for a while has nothing to give up any more, and its session.
        is_to_revoke = member.state is MemberState.UNREVOKED_TASKS and member.member_epoch >= 0
        if is_to_revoke and ("streams-revocation", group.group_id, member_id) not in tasks:
            raise Violation(DEADLINES, f"{member_id} of {group} may keep what it has to give up")


def check_roles(group: StreamsGroup, members: Iterable[StreamsGroupMember]) -> None:
    """Check the tasks of each process, as the group knows them. Raises Violation."""
    active: dict[Task, str] = {}
    standby: dict[Task, set[str]] = {}
    # By process and task, the member that has it.
    holders: dict[tuple[str, Task], str] = {}
    for member in members:
        process, holder_id = member.process_id or "", member.member_id
        for owned in (member.assigned, member.pending_revocation):
            active.update(dict.fromkeys(tasks_of(owned.active), holder_id))
            for task in tasks_of(owned.standby):
                standby.setdefault(task, set()).add(holder_id)
            for task in chain(tasks_of(owned.active), tasks_of(owned.standby), tasks_of(owned.warmup)):
                holder = holders.setdefault((process, task), member.member_id)
                if holder != member.member_id:
                    raise Violation(ROLES, f"{task} of {group} is of {holder} and {member}, in one process")
        twice = _twice(member.assigned)
        if twice:
            raise Violation(ROLES, f"{twice} of {group} are so twice of {member}")
    known = dict(group.active_holders.items()), {task: set(each) for task, each in group.standby_holders.items()}
    if known != (active, standby):
        raise Violation(HOLDERS, f"{group} has {known}, and its members {active, standby}")


def _twice(owned: OwnedTasks) -> set[Task]:
    """Tasks that a member is to have in two roles."""
    active, standby, warmup = (set(tasks_of(each)) for each in owned)
    return (active & standby) | (active & warmup) | (standby & warmup)


def objection_to(api_key: ApiKey, request: Any, hosted: HostedShard[GroupShard] | None, said: Records, topics: Topics) -> str:
    """Reasons against granting a request; empty where there are none, or it is decided later."""
    if hosted is None or hosted._is_deciding:
        return ""
    group = hosted.shard.groups.find(request.group_id)
    if api_key is ApiKey.OFFSET_COMMIT:
        return _objection_to_commit(group, request, topics) if isinstance(group, StreamsGroup) else ""
    if request.member_epoch == 0:
        return _objection_to_topology(hosted, request, said)
    member = group.members.get(request.member_id) if isinstance(group, StreamsGroup) else None
    if member is None:
        return "it is not a member"
    if request.member_epoch < 0 or request.member_epoch in (member.member_epoch, member.previous_member_epoch):
        return ""
    return f"its epoch is {member.member_epoch}"


def forgets_shutdown(group: Any, request: Any) -> bool:
    """Return whether a group has no member, but one whose place the joining member may take. As in Kafka, it is empty then."""
    members = dict(group.members.items()) if isinstance(group, StreamsGroup) else {}
    is_joining = request.member_epoch == 0 and request.instance_id is not None
    return all(is_joining and each.instance_id == request.instance_id for each in members.values())


def _objection_to_topology(hosted: HostedShard[GroupShard], request: Any, said: Records) -> str:
    if hosted.has_open_batch or said.epoch is None or said.topology is None:
        return ""
    given, known = request.topology, said.topology
    if given.epoch < known.epoch or shape_of(given.subtopologies) == shape_of(known.subtopologies):
        return ""
    return f"it has another topology than {said.topology}"


def _objection_to_commit(group: StreamsGroup, request: Any, topics: Topics) -> str:
    epoch = request.generation_id_or_member_epoch
    if epoch < 0:
        return "the group has members" if group.members else ""
    member = group.members.get(request.member_id)
    if member is None:
        return "it is not a member"
    if epoch == member.member_epoch:
        return ""
    topology = group.topology.get()
    if epoch > member.member_epoch or topology is None:
        return f"its epoch is {member.member_epoch}"
    readers = {name: each.subtopology_id for each in topology.value.subtopologies for name in each.source_topics}
    for topic in request.topics:
        name = topic.name or topics.names.get(topic.topic_id, "")
        for each in topic.partitions:
            owned = (tasks.active.get(readers.get(name, ""), {}) for tasks in (member.assigned, member.pending_revocation))
            since = min((own[each.partition_index] for own in owned if each.partition_index in own), default=None)
            if since is None or since > epoch:
                return f"its epoch is {member.member_epoch}, and it has {name}-{each.partition_index} since {since}"
    return ""


def objection_to_epoch(group: Any, member_id: str | None, epoch: int, committed_offset: int) -> str:
    """Reasons against a member's OffsetFetch, which is that of the present or of what is committed."""
    if not isinstance(group, StreamsGroup):
        return ""
    found = (group.members.get(member_id or ""), group.members.get_at(member_id or "", committed_offset))
    epochs = [member.member_epoch for member in found if member is not None]
    if not epochs:
        return "it is not a member"
    return "" if epoch in epochs else f"its epoch is {epochs[0]}"


def untrue_refusals(api_key: ApiKey, request: Any, hosted: HostedShard[GroupShard] | None, said: Records) -> frozenset[int]:
    """The errors that a request must not be answered with, going by what the log says, where nothing waits to be appended."""
    is_known = hosted is not None and not hosted._is_deciding and not hosted.has_open_batch and said.epoch is not None
    if not is_known or api_key is not ApiKey.STREAMS_GROUP_HEARTBEAT:
        return frozenset()
    untrue = {ErrorCode.GROUP_ID_NOT_FOUND}
    if request.member_id in said.members:
        untrue.add(ErrorCode.UNKNOWN_MEMBER_ID)
    assigned = said.assignments.get(request.member_id)
    if assigned is not None and assigned.member_epoch == request.member_epoch:
        untrue.add(ErrorCode.FENCED_MEMBER_EPOCH)
    others = [each for each, member in said.members.items() if member.instance_id == request.instance_id is not None]
    if all(each in said.assignments and said.assignments[each].member_epoch == LEAVE_STATIC_EPOCH for each in others):
        untrue.add(ErrorCode.UNRELEASED_INSTANCE_ID)
    return frozenset(map(int, untrue))
