"""SyncGroup, Heartbeat and LeaveGroup of a classic group's members.

SyncGroup: the leader hands in the assignment, the members fetch theirs.

By the group's state, for a member of the generation (others get UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION):

    Empty                 UNKNOWN_MEMBER_ID: an empty group has no members
    PreparingRebalance    REBALANCE_IN_PROGRESS: join again
    CompletingRebalance   waits until the leader's assignment is committed; then the group is Stable and all are answered
    Stable                answered with its assignment

Since version 5 a client names the group's protocol, and gets INCONSISTENT_GROUP_PROTOCOL if it is wrong (KIP-559).

Heartbeat: a member reports that it is alive, and learns whether it must join again.

    Empty                                UNKNOWN_MEMBER_ID: an empty group has no members
    PreparingRebalance                   REBALANCE_IN_PROGRESS
    CompletingRebalance, Stable          NONE

for a member of the generation. Others get the errors above. HOT: the most frequent request.

LeaveGroup: members leave, several at a time since version 3 (KIP-345), each with a reason since version 5 (KIP-800).

A static member may be removed by instance id alone, without a member id. If a leaving member has a held JoinGroup, that is
answered UNKNOWN_MEMBER_ID.
"""

from functools import partial
from typing import Final

from odradek.coordinator.group.classic.decision import Decision, join_error, sync_error, synced
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import ClassicGroups, group_record
from odradek.coordinator.group.classic.member import Member, SyncReply
from odradek.coordinator.group.classic.rebalance import (
    answer_sync,
    complete_if_all_joined,
    note_stable,
    prepare,
    reset_assignments,
    stop_waiting_for_syncs,
)
from odradek.coordinator.group.classic.states import GroupState, RebalanceCause, named
from odradek.coordinator.group.config import MemberContext
from odradek.coordinator.runtime.result import DEFERRED_RESPONSE, CoordinatorResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.message_types.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from odradek.protocol.message_types.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_REQUIRED_SINCE: Final = 5


def sync_group(
    groups: ClassicGroups, context: MemberContext, request: SyncGroupRequest, reply: SyncReply
) -> CoordinatorResult[SyncGroupResponse]:
    """Decide on a SyncGroup; ``reply`` is answered by this result, or by the one that has the assignment."""
    decision = Decision()
    group = groups.find(request.group_id)
    error = _validate(group, context, request)
    if group is None or error is not ErrorCode.NONE:
        decision.answer(reply, sync_error(error))
        return decision.result(DEFERRED_RESPONSE)
    member = group.members[request.member_id]
    if group.state is GroupState.PREPARING_REBALANCE:
        decision.answer(reply, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        return decision.result(DEFERRED_RESPONSE)
    group.pending_syncs.pop(member.member_id, None)
    if not group.pending_syncs:
        stop_waiting_for_syncs(groups, group)
    if group.state is GroupState.STABLE:
        groups.sessions.touch(group, member)
        decision.answer(reply, synced(group, member.assignment))
        return decision.result(DEFERRED_RESPONSE)
    # An earlier SyncGroup of this member came on a connection it gave up. Kafka leaves that request without an answer.
    decision.answer(member.waiting_sync, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
    member.waiting_sync = reply
    decision.on_failure(partial(_take_back, groups, group, member, reply))
    # Each generation has one assignment, the first. If the leader syncs again before the commit, it waits for that commit. Kafka
    # writes the second one too: then members hold the first, while the log holds the second.
    if group.leader == member.member_id and not group.is_assigned:
        _write_assignment(groups, group, member, request, decision)
    return decision.result(DEFERRED_RESPONSE)


def _take_back(groups: ClassicGroups, group: ClassicGroup, member: Member, reply: SyncReply, _: KafkaError) -> None:
    """Drop the held SyncGroup of a batch that failed. ``reply`` fails too, and the member joins again."""
    if member.waiting_sync is reply and groups.is_live(group):
        member.waiting_sync = None
        groups.sessions.touch(group, member)


def _validate(group: ClassicGroup | None, context: MemberContext, request: SyncGroupRequest) -> ErrorCode:
    if context.version >= _PROTOCOL_REQUIRED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _differ(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual


def _write_assignment(
    groups: ClassicGroups, group: ClassicGroup, leader: Member, request: SyncGroupRequest, decision: Decision
) -> None:
    generation = group.generation
    given = {assignment.member_id: bytes(assignment.assignment) for assignment in request.assignments}
    # Members the leader omitted get an empty assignment. Unknown member ids are dropped.
    assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
    left_out = group.members.keys() - given.keys()
    if left_out:
        groups.reports.warn(
            "the leader left members without an assignment",
            group=group.group_id,
            generation=generation,
            leader=leader.member_id,
            members=named(left_out),
        )

    def become_stable() -> None:
        if _awaits_assignment(group, generation):
            _become_stable(groups, group, assignments, decision)

    def begin_again(error: KafkaError) -> None:
        if _awaits_assignment(group, generation):
            reset_assignments(groups, group, error.code, decision)
            why = f"the assignment of {leader.member_id} could not be written: {error.code.name}"
            prepare(groups, group, RebalanceCause.APPEND_FAILED, why, decision)

    group.is_assigned = True
    decision.records.append(group_record(group, assignments))
    decision.on_commit(become_stable)
    decision.on_failure(begin_again)


def _awaits_assignment(group: ClassicGroup, generation: int) -> bool:
    return group.state is GroupState.COMPLETING_REBALANCE and group.generation == generation


def _become_stable(groups: ClassicGroups, group: ClassicGroup, assignments: dict[str, bytes], decision: Decision) -> None:
    group.transition_to(GroupState.STABLE, groups.clock.now_ms())
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        answer_sync(groups, group, member, synced(group, member.assignment), decision)
    note_stable(groups, group)


def _answer(error_code: ErrorCode) -> CoordinatorResult[HeartbeatResponse]:
    return CoordinatorResult((), HeartbeatResponse(error_code=error_code))


# Shared results: they are the same for every request and never modified.
_ALIVE: Final = _answer(ErrorCode.NONE)
_REBALANCING: Final = _answer(ErrorCode.REBALANCE_IN_PROGRESS)
_OTHER_GENERATION: Final = _answer(ErrorCode.ILLEGAL_GENERATION)
_UNKNOWN: Final = _answer(ErrorCode.UNKNOWN_MEMBER_ID)


def heartbeat(groups: ClassicGroups, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
    """Decide on a Heartbeat."""
    groups.counters.heartbeats += 1
    group = groups.find(request.group_id)
    if group is None:
        return _UNKNOWN if request.group_id else _answer(ErrorCode.INVALID_GROUP_ID)
    member = group.members.get(request.member_id)
    if member is None or member.group_instance_id != request.group_instance_id:
        if not request.group_id:
            # A group with the empty id may exist, with offsets. It has no members.
            return _answer(ErrorCode.INVALID_GROUP_ID)
        # A member may omit its instance id, and then it is not checked.
        error = group.validate_member(request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE or member is None:
            return _answer(error)
    if request.generation_id != group.generation:
        return _OTHER_GENERATION
    groups.sessions.touch(group, member)
    return _REBALANCING if group.state is GroupState.PREPARING_REBALANCE else _ALIVE


_REASON_LENGTH: Final = 255


def leave_group(groups: ClassicGroups, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
    """Decide on a LeaveGroup. An unknown member gets an error; the others still leave."""
    if not request.group_id:
        return CoordinatorResult((), LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    group = groups.find(request.group_id)
    decision = Decision()
    gone: dict[str, str] = {}
    answers = []
    for identity in request.members:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave(groups, group, identity, gone, decision)
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
        )
    if group is not None and gone:
        if group.state is GroupState.PREPARING_REBALANCE:
            complete_if_all_joined(groups, group, decision)
        elif group.state is not GroupState.EMPTY:
            # A leaving pending member also begins a rebalance, as in Kafka.
            reasons = sorted(set(gone.values()))[:3]
            why = f"{', '.join(named(gone))} left; reasons given by their clients: {', '.join(reasons)}"
            prepare(groups, group, RebalanceCause.MEMBER_LEFT, why, decision)
    return decision.result(LeaveGroupResponse(members=answers))


def _leave(
    groups: ClassicGroups, group: ClassicGroup, identity: MemberIdentity, gone: dict[str, str], decision: Decision
) -> ErrorCode:
    member_id = identity.member_id
    if not member_id:
        instance_id = identity.group_instance_id
        member_id = "" if instance_id is None else group.static_members.get(instance_id, "")
    elif member_id not in group.pending_joins:
        error = group.validate_member(member_id, identity.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    if not member_id:
        return ErrorCode.UNKNOWN_MEMBER_ID
    member = group.members.get(member_id)
    if member is not None:
        decision.answer(group.release_join(member), join_error(ErrorCode.UNKNOWN_MEMBER_ID))
        decision.answer(member.waiting_sync, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    groups.sessions.end(group, member_id)
    gone[member_id] = (identity.reason or "not provided")[:_REASON_LENGTH]
    return ErrorCode.NONE
