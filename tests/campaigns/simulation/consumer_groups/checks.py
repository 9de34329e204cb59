"""What must be true of a group at any moment, and what speaks for and against a request as it arrives.

owners       of a partition there is one at most among the members that are in the group, as they themselves understand it
released     what such a member owns is among what the group says that it has, or has yet to give up
deadlines    each member's silence is noticed, and that it does not give up what it has to
served       who is in the group, in its epoch; who is not, is refused. A commit of an older epoch of a member is taken for
             partitions that the member has had since then
known        a member that the log has is not told that it, or its group, or its epoch is unknown
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.states import MemberState
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.campaigns.simulation.objections import CHECKED_APIS as CHECKED_APIS_OF_CLASSIC_GROUPS
from tests.campaigns.simulation.objections import objection_to as objection_in_classic_group
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from tests.campaigns.simulation.consumer_groups.history import Records
    from tests.campaigns.simulation.consumer_groups.topics import Topics

OWNED_TWICE = "no partition is owned by two"
NOT_RELEASED = "what a member owns is known to be its own"
DEADLINES = "a member's silence is noticed"

CHECKED_APIS = CHECKED_APIS_OF_CLASSIC_GROUPS | {ApiKey.CONSUMER_GROUP_HEARTBEAT}
_NOTHING: dict[int, int] = {}


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
    """What there is to be said against granting a request; empty where there is nothing, or it is decided later."""
    if hosted is None or hosted._is_deciding or api_key not in CHECKED_APIS:
        return ""
    group = hosted.shard.groups.find(request.group_id)
    if api_key is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return _objection_to_heartbeat(group, request)
    if not isinstance(group, ConsumerGroup):
        return objection_in_classic_group(api_key, request, hosted)
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
    if member.classic is not None or epoch > member.member_epoch:
        return f"its epoch is {member.member_epoch}"
    for topic in request.topics:
        topic_id = topics.ids.get(topic.name) if topic.name else topic.topic_id
        owned = {**member.pending_revocation.get(topic_id, {}), **member.assigned.get(topic_id, {})}
        if any(owned.get(each.partition_index, epoch + 1) > epoch for each in topic.partitions):
            return f"its epoch is {member.member_epoch}, and it has {owned} of {topic_id}"
    return ""


def objection_to_epoch(group: Any, member_id: str | None, epoch: int) -> str:
    """What there is to be said against a member's fetching of offsets."""
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup):
        return ""
    if member is None:
        return "it is not a member"
    return "" if member.member_epoch == epoch else f"its epoch is {member.member_epoch}"


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
        and member.classic is not None
        and assigned is not None
    ):
        untrue = {ErrorCode.UNKNOWN_MEMBER_ID}
        if assigned.member_epoch == request.generation_id:
            untrue.add(ErrorCode.ILLEGAL_GENERATION)
        return frozenset(map(int, untrue))
    return frozenset()
