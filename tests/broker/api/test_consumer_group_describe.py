"""ConsumerGroupDescribe, and what the APIs of all groups say of consumer groups."""

from odradek.broker.api.acl_messages import GROUP_OPERATIONS, NO_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.consumer_requests import ask, beat, commit


async def describe(node, *group_ids, **fields):
    return (await ask(node, ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=group_ids, **fields)).groups


async def test_a_group_is_described_with_what_its_members_have_and_are_to_have(node):
    await node.create()
    await beat(node, rack_id="r", instance_id="i")

    (group,) = await describe(node, "g")

    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == ("Stable", 2, 2, "uniform")
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
    assert (list(member.subscribed_topic_names), member.subscribed_topic_regex, member.member_type) == (["t"], "", 1)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.topic_name, list(each.partitions)) for each in assignment.topic_partitions] == [("t", [0])]


async def test_a_group_that_is_not_there_and_one_of_another_kind_are_not_found(node):
    await node.create()
    await commit(node, -1, "")

    told = await describe(node, "g", "nowhere", "")

    assert [(each.error_code, each.error_message) for each in told] == [
        (ErrorCode.GROUP_ID_NOT_FOUND, "not a consumer group: g"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "there is no group nowhere"),
        (ErrorCode.INVALID_GROUP_ID, None),
    ]


async def test_operations_are_told_where_they_are_asked_for(node):
    await beat(node)
    (asked,) = await describe(node, "g", include_authorized_operations=True)
    (unasked,) = await describe(node, "g")
    assert (asked.authorized_operations, unasked.authorized_operations) == (GROUP_OPERATIONS, NO_OPERATIONS)


async def test_the_other_apis_know_it_by_its_type(node):
    await beat(node)
    (listed,) = (await ask(node, ApiKey.LIST_GROUPS, types_filter=["consumer"], states_filter=["stable"])).groups
    assert (listed.group_id, listed.group_type, listed.group_state, listed.protocol_type) == (
        "g",
        "consumer",
        "Stable",
        "consumer",
    )
    assert not (await ask(node, ApiKey.LIST_GROUPS, types_filter=["classic"])).groups
    (dead,) = (await ask(node, ApiKey.DESCRIBE_GROUPS, groups=["g"])).groups
    assert (dead.group_state, dead.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)


async def test_it_can_be_deleted_when_its_members_have_left(node):
    await beat(node)
    assert [each.error_code for each in await deleted(node)] == [ErrorCode.NON_EMPTY_GROUP]
    await beat(node, "m", -1)
    assert [each.error_code for each in await deleted(node)] == [ErrorCode.NONE]
    assert not (await ask(node, ApiKey.LIST_GROUPS)).groups


async def deleted(node):
    return (await ask(node, ApiKey.DELETE_GROUPS, groups_names=["g"])).results
