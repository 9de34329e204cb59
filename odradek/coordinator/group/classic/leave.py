"""LeaveGroup: members leave, several at a time since version 3 (KIP-345), each with a reason since version 5 (KIP-800).

A static member may be removed by instance id alone, without a member id. If a leaving member has a held JoinGroup, that is
answered UNKNOWN_MEMBER_ID.
"""

from typing import Final

from odradek.coordinator.group.classic.decision import Decision, join_error, sync_error
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.groups import ClassicGroups
from odradek.coordinator.group.classic.rebalance import complete_if_all_joined, prepare
from odradek.coordinator.group.classic.rebalance_notes import RebalanceCause, named
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse

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
