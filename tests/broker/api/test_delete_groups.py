"""DeleteGroups: each group's own error, when all of them are decided on."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from odradek.protocol.message_types.leave_group import LeaveGroupRequest, MemberIdentity


async def delete(node, *group_ids):
    response = await node.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=group_ids))
    return list(response.results)


async def test_a_group_without_members_is_deleted_once(node):
    member_id, _ = await node.stable_member("a")
    await node.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id="a", members=[MemberIdentity(member_id=member_id)]))

    assert await delete(node, "a", "nowhere", "a") == [
        DeletableGroupResult(group_id="a"),
        DeletableGroupResult(group_id="nowhere", error_code=ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert await delete(node, "a") == [DeletableGroupResult(group_id="a", error_code=ErrorCode.GROUP_ID_NOT_FOUND)]


async def test_a_group_with_members_stays(node):
    await node.stable_member("a")

    assert await delete(node, "a") == [DeletableGroupResult(group_id="a", error_code=ErrorCode.NON_EMPTY_GROUP)]


async def test_a_shard_that_is_elsewhere_refuses_its_groups_alone(node):
    await node.stable_member("a")
    runtime = node.core.groups.runtime
    elsewhere = next(name for name in "bcdefgh" if runtime.partition_for(name) != runtime.partition_for("a"))
    runtime.unload(runtime.partition_for(elsewhere))

    assert await delete(node, elsewhere, "a") == [
        DeletableGroupResult(group_id=elsewhere, error_code=ErrorCode.NOT_COORDINATOR),
        DeletableGroupResult(group_id="a", error_code=ErrorCode.NON_EMPTY_GROUP),
    ]


async def test_no_group_is_asked_for_and_none_answered(node):
    assert await delete(node) == []
