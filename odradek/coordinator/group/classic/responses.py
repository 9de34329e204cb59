"""What members are answered. Where an older version cannot say something, its handler says it otherwise."""

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.message_types.sync_group import SyncGroupResponse


def join_error(error_code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """A JoinGroup that is refused, or sent back for another try."""
    return JoinGroupResponse(error_code=error_code, member_id=member_id)


def joined(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """A JoinGroup that is granted: the generation, and for its leader alone what every member said of itself."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    if group.leader == member_id:
        members = tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        )
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def joined_in_place_of(group: ClassicGroup, member_id: str, leader: str) -> JoinGroupResponse:
    """A static member's JoinGroup before version 9, granted without a rebalance.

    ``leader`` is who led before: where that was the member itself, under its former id, it does not recognise itself, and so
    does not compute an assignment that nobody would use (KIP-814 says it with ``skip_assignment``).
    """
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader,
        member_id=member_id,
    )


def sync_error(error_code: ErrorCode) -> SyncGroupResponse:
    """A SyncGroup that is refused."""
    return SyncGroupResponse(error_code=error_code)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """A SyncGroup that is granted: what the leader gave this member."""
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
