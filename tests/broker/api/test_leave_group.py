"""LeaveGroup: each member's own error, or the one that there is place for."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.leave_group import LeaveGroupRequest, MemberIdentity


def request(*member_ids):
    return LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id) for member_id in member_ids])


async def test_who_is_no_member_keeps_nobody_from_leaving(node):
    member_id, _ = await node.stable_member()

    response = await node.ask(ApiKey.LEAVE_GROUP, request("nobody", member_id))

    assert response.error_code == ErrorCode.NONE
    assert [(each.member_id, each.error_code) for each in response.members] == [
        ("nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        (member_id, ErrorCode.NONE),
    ]


async def test_a_static_member_leaves_by_its_instance_id(node):
    await node.stable_member(version=5, group_instance_id="i")
    by_instance = LeaveGroupRequest(group_id="g", members=[MemberIdentity(group_instance_id="i")])

    (left,) = (await node.ask(ApiKey.LEAVE_GROUP, by_instance)).members
    (again,) = (await node.ask(ApiKey.LEAVE_GROUP, by_instance)).members

    assert (left.group_instance_id, left.error_code) == ("i", ErrorCode.NONE)
    assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID
