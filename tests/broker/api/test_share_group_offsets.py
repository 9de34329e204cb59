"""DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets and DeleteGroups of share groups, on a broker."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.consumer_requests import ask
from tests.broker.api.share_requests import ShareNode, new_share_broker

ALTER = messages(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
DELETE = messages(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
DESCRIBE = messages(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
async def shares():
    async with new_share_broker() as broker:
        node = ShareNode(broker)
        await node.turn_on()
        yield node


async def alter(node, by_topic, group_id="g"):
    topics = [
        ALTER.AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                ALTER.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                for index, offset in by_index.items()
            ],
        )
        for name, by_index in by_topic.items()
    ]
    return await ask(node, ApiKey.ALTER_SHARE_GROUP_OFFSETS, group_id=group_id, topics=topics)


async def delete(node, *names, group_id="g"):
    topics = [DELETE.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    return await ask(node, ApiKey.DELETE_SHARE_GROUP_OFFSETS, group_id=group_id, topics=topics)


async def describe(node, by_topic=None, group_id="g"):
    """{topic: [(partition, error, start offset, lag)]} of a group."""
    topics = by_topic and [
        DESCRIBE.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes) for name, indexes in by_topic.items()
    ]
    asked = [DESCRIBE.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)]
    (group,) = (await ask(node, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, groups=asked)).groups
    assert group.error_code == NONE
    return {
        topic.topic_name: [(each.partition_index, each.error_code, each.start_offset, each.lag) for each in topic.partitions]
        for topic in group.topics
    }


def answered(response):
    assert response.error_code == NONE, response
    return {
        topic.topic_name: [(each.partition_index, each.error_code) for each in topic.partitions] for topic in response.responses
    }


async def test_offsets_and_lags_are_those_of_the_share_coordinators(shares):
    topic_id = await shares.stable()
    await shares.produce(values=[b"a", b"b", b"c"])
    assert await describe(shares) == {"t": [(0, NONE, -1, -1), (1, NONE, -1, -1)]}
    state = shares.states.states["g", topic_id, 0]
    shares.states.states["g", topic_id, 0] = state._replace(start_offset=1, delivery_complete_count=1)
    assert await describe(shares, {"t": [0, 7], "no": [0]}) == {
        "t": [(0, NONE, 1, 1), (7, NONE, -1, -1)],
        "no": [(0, NONE, -1, -1)],
    }
    assert await describe(shares, group_id="no") == {}
    shares.states.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await describe(shares, {"t": [0]}) == {"t": [(0, NONE, -1, -1)]}


async def test_offsets_are_altered_only_without_members(shares):
    topic_id = await shares.stable()
    assert (await alter(shares, {"t": {0: 5}})).error_code == ErrorCode.NON_EMPTY_GROUP
    await shares.beat("m", -1)
    assert answered(await alter(shares, {"t": {0: 5, 9: 1}, "no": {0: 1}})) == {
        "t": [(0, NONE), (9, UNKNOWN)],
        "no": [(0, UNKNOWN)],
    }
    assert shares.states.states["g", topic_id, 0].start_offset == 5
    shares.states.failure = ErrorCode.FENCED_STATE_EPOCH
    assert answered(await alter(shares, {"t": {0: 6}})) == {"t": [(0, ErrorCode.FENCED_STATE_EPOCH)]}
    assert (await alter(shares, {}, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID


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
