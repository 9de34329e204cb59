"""Heartbeat: a member reports that it is alive, and learns whether it must join again.

    Empty                                UNKNOWN_MEMBER_ID: an empty group has no members
    PreparingRebalance                   REBALANCE_IN_PROGRESS
    CompletingRebalance, Stable          NONE

for a member of the generation. Others get UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION. HOT: the most frequent
request.
"""

from typing import Final

from odradek.coordinator.group.classic.groups import ClassicGroups
from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.heartbeat import HeartbeatRequest, HeartbeatResponse


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
