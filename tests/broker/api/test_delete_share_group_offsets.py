"""DeleteShareGroupOffsets, and the offsets of a group that is deleted."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.broker.api.consumer_requests import ask
from tests.broker.api.share_offsets import delete, describe

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_offsets_of_a_topic_are_deleted_only_without_members(shares):
    topic_id = await shares.stable()
    assert (await delete(shares, "t")).error_code == ErrorCode.NON_EMPTY_GROUP
    assert (await delete(shares, "t", group_id="no")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (await delete(shares, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
    await shares.beat("m", -1)
    shares.states.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    (topic,) = (await delete(shares, "t")).responses
    assert (topic.topic_id, topic.error_code) == (topic_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    shares.states.failure = None
    response = await delete(shares, "t", "no")
    assert [(each.topic_name, each.error_code) for each in response.responses] == [("t", NONE), ("no", UNKNOWN)]
    assert (shares.states.states, await describe(shares)) == ({}, {})


async def test_a_group_is_deleted_only_after_its_states(shares):
    await shares.stable()

    async def delete_group():
        (result,) = (await ask(shares, ApiKey.DELETE_GROUPS, groups_names=["g"])).results
        return result.error_code

    assert await delete_group() == ErrorCode.NON_EMPTY_GROUP
    await shares.beat("m", -1)
    shares.states.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await delete_group() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (listed,) = (await ask(shares, ApiKey.LIST_GROUPS)).groups
    assert listed.group_state == "Empty"
    shares.states.failure = None
    assert await delete_group() == NONE
    assert (shares.states.states, (await ask(shares, ApiKey.LIST_GROUPS)).groups) == ({}, [])
    assert await delete_group() == ErrorCode.GROUP_ID_NOT_FOUND
