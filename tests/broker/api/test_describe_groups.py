"""DescribeGroups: each group by itself, with the operations where they are asked for."""

import pytest

from odradek.broker.api.acl_messages import GROUP_OPERATIONS, NO_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_groups import DescribedGroup, DescribeGroupsRequest


async def describe(node, *group_ids, version=None, **fields):
    response = await node.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=group_ids, **fields), version)
    return response.groups


async def test_a_stable_group_is_described_with_its_members(node):
    member_id, _ = await node.stable_member()

    (group,) = await describe(node, "g")

    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    assert [(each.member_id, each.member_metadata, each.member_assignment) for each in group.members] == [
        (member_id, b"m", b"all")
    ]


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [*((version, ErrorCode.NONE, None) for version in range(6)), (6, ErrorCode.GROUP_ID_NOT_FOUND, "Group nowhere not found.")],
)
async def test_since_version_6_a_group_that_is_not_there_is_an_error(node, version, error, message):
    await node.stable_member()

    (group,) = await describe(node, "nowhere", version=version)

    assert group == DescribedGroup(group_id="nowhere", group_state="Dead", error_code=error, error_message=message)


async def test_operations_are_told_of_what_is_there_where_they_are_asked_for(node):
    await node.stable_member()

    asked = await describe(node, "g", "nowhere", include_authorized_operations=True)
    (unasked,) = await describe(node, "g")

    assert [group.authorized_operations for group in asked] == [GROUP_OPERATIONS, NO_OPERATIONS]
    assert sum(1 << operation for operation in (3, 6, 8, 10, 11)) == GROUP_OPERATIONS
    assert unasked.authorized_operations == NO_OPERATIONS


async def test_a_group_whose_shard_is_loading_is_described_by_that(node):
    await node.stable_member()
    await node.restart()

    (group,) = await describe(node, "g", include_authorized_operations=True)

    assert group == DescribedGroup(group_id="g", error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
