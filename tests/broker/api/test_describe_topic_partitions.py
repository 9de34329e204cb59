"""DescribeTopicPartitions: topics in the order of their names, a page at a time."""

import pytest

from odradek.broker.api.acl_messages import TOPIC_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    RequestCursor,
    TopicRequest,
)
from tests.broker.api.in_process import Node, new_broker


async def page(node, *names, cursor=None, limit=2000):
    """({topic: partitions}, next cursor)"""
    response = await describe(node, *names, cursor=cursor, limit=limit)
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics], response.next_cursor


async def describe(node, *names, cursor=None, limit=2000):
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else RequestCursor(*cursor),
    )
    return await node.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)


async def test_topics_come_once_in_the_order_of_their_names(node):
    for name in "cab":
        await node.create(name)

    assert await page(node, "c", "a", "c") == ([("a", [0]), ("c", [0])], None)
    assert await page(node) == ([("a", [0]), ("b", [0]), ("c", [0])], None)


async def test_pages_follow_one_another_by_their_cursors(node):
    await node.create("a", 3)
    await node.create("b", 2)

    assert await page(node, limit=2) == ([("a", [0, 1])], Cursor("a", 2))
    assert await page(node, limit=2, cursor=("a", 2)) == ([("a", [2]), ("b", [0])], Cursor("b", 1))
    assert await page(node, limit=2, cursor=("b", 1)) == ([("b", [1])], None)
    # A page that is full at the end of a topic goes on at the next.
    assert await page(node, limit=3) == ([("a", [0, 1, 2])], Cursor("b", 0))


@pytest.mark.parametrize("limit", [0, -5])
async def test_a_page_has_one_partition_at_least(node, limit):
    await node.create("a", 2)

    assert await page(node, limit=limit) == ([("a", [0])], Cursor("a", 1))


async def test_no_page_is_larger_than_the_broker_s_limit():
    async with new_broker(max_request_partition_size_limit="2") as broker:
        node = Node(broker)
        await node.create("a", 3)

        assert await page(node, limit=2000) == ([("a", [0, 1])], Cursor("a", 2))


async def test_a_topic_that_is_gone_does_not_shift_the_next_one(node):
    """The cursor's partition is of its own topic: where that is there no more, the next one begins at its first."""
    await node.create("b", 3)

    assert await page(node, cursor=("a", 2)) == ([("b", [0, 1, 2])], None)


@pytest.mark.parametrize("elsewhere", ["a", "c", ""])
async def test_a_cursor_in_a_topic_that_is_not_named_is_refused_for_each_topic(node, elsewhere):
    await node.create("b", 3)
    response = await describe(node, "b", "d", cursor=(elsewhere, 0))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("b", ErrorCode.INVALID_REQUEST),
        ("d", ErrorCode.INVALID_REQUEST),
    ]


@pytest.mark.parametrize(
    ("name", "error"), [("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("no way", ErrorCode.INVALID_TOPIC_EXCEPTION)]
)
async def test_a_topic_that_is_not_there_is_told_so(node, name, error):
    (topic,) = (await describe(node, name)).topics

    assert (topic.name, topic.error_code, topic.topic_id, list(topic.partitions)) == (name, error, None, [])


async def test_a_partition_is_described_with_its_leader(node):
    topic_id = await node.create("a")

    (topic,) = (await describe(node, "a")).topics
    (partition,) = topic.partitions

    assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (topic_id, False, TOPIC_OPERATIONS)
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.NONE, 1, 0)
    assert (list(partition.replica_nodes), list(partition.isr_nodes), list(partition.offline_replicas)) == ([1], [1], [])


async def test_internal_topics_are_said_to_be(node):
    await node.stable_member()

    (topic,) = (await describe(node, "__consumer_offsets", limit=1)).topics

    assert topic.is_internal


async def test_a_cursor_before_the_first_partition_is_refused_for_each_topic(node):
    await node.create("a")

    response = await describe(node, "a", "b", cursor=("a", -1))

    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
