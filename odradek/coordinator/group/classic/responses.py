"""What members are answered. Where an older version cannot say something, its handler says it otherwise."""

from typing import Any, Final

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages

_JOIN: Final = messages(ApiKey.JOIN_GROUP)
_SYNC: Final = messages(ApiKey.SYNC_GROUP)


def join_error(error_code: ErrorCode, member_id: str = "") -> Any:
    """A JoinGroup that is refused, or sent back for another try."""
    return _JOIN.JoinGroupResponse(error_code=error_code, member_id=member_id)


def joined(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> Any:
    """A JoinGroup that is granted: the generation, and for its leader alone what every member said of itself."""
    members: tuple[Any, ...] = ()
    if group.leader == member_id:
        member_class = _JOIN.JoinGroupResponseMember
        members = tuple(
            member_class(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        )
    return _JOIN.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def joined_in_place_of(group: ClassicGroup, member_id: str, leader: str) -> Any:
    """A static member's JoinGroup before version 9, granted without a rebalance.

    ``leader`` is who led before: where that was the member itself, under its former id, it does not recognise itself, and so
    does not compute an assignment that nobody would use (KIP-814 says it with ``skip_assignment``).
    """
    return _JOIN.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader,
        member_id=member_id,
    )


def sync_error(error_code: ErrorCode) -> Any:
    """A SyncGroup that is refused."""
    return _SYNC.SyncGroupResponse(error_code=error_code)


def synced(group: ClassicGroup, assignment: bytes) -> Any:
    """A SyncGroup that is granted: what the leader gave this member."""
    return _SYNC.SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
