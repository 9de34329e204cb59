"""The responses to members, in their newest version. Handlers translate them for older versions."""

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.message_types.sync_group import SyncGroupResponse


def join_error(error_code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """The response to a JoinGroup that is refused, or that the client shall repeat."""
    return JoinGroupResponse(error_code=error_code, member_id=member_id)


def joined(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The response to a JoinGroup that is granted: the generation, and for the leader the metadata of all members."""
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
    """The response to a SyncGroup that is refused."""
    return SyncGroupResponse(error_code=error_code)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """The response to a SyncGroup that is granted: the member's assignment."""
    return SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
