"""ListGroups: what is here, of the states and types asked for."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.list_groups import ListedGroup, ListGroupsRequest


async def listed(node, **fields):
    response = await node.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(**fields))
    return response.error_code, sorted(response.groups)


async def test_the_groups_of_all_shards_are_listed(node):
    for name in "abcdef":
        await node.stable_member(name)

    assert len({node.core.groups.runtime.partition_for(name) for name in "abcdef"}) == 3
    expected = [ListedGroup(name, "consumer", "Stable", "classic") for name in "abcdef"]
    assert await listed(node) == (ErrorCode.NONE, expected)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"states_filter": ["stable"]}, True),
        ({"states_filter": ["Empty"]}, False),
        ({"types_filter": ["Classic"]}, True),
        ({"types_filter": ["consumer"]}, False),
        ({"states_filter": ["Stable"], "types_filter": ["consumer"]}, False),
    ],
)
async def test_groups_are_listed_by_state_and_type(node, fields, found):
    await node.stable_member()

    _, groups = await listed(node, **fields)

    assert [group.group_id for group in groups] == ["g"] * found


async def test_groups_are_not_listed_while_some_are_loading(node):
    await node.stable_member()
    await node.restart()

    assert await listed(node) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
    await node.broker.settle()
    assert [group.group_id for group in (await listed(node))[1]] == ["g"]


async def test_groups_of_shards_that_are_elsewhere_are_not_listed(node):
    runtime = node.core.groups.runtime
    for name in "abcdef":
        await node.stable_member(name)
    gone = runtime.partition_for("a")
    runtime.unload(gone)

    error_code, groups = await listed(node)

    assert error_code == ErrorCode.NONE
    assert [group.group_id for group in groups] == [name for name in "abcdef" if runtime.partition_for(name) != gone]
