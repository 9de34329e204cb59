"""InitializeShareGroupState, and the topic behind all APIs for the state of share partitions."""

from uuid import UUID

from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.errors import ErrorCode
from tests.broker.api.in_process import Node, new_broker
from tests.broker.api.share_state_requests import INITIALIZE, STATE_APIS, SUMMARY, ask, ask_all, find


async def test_each_partition_has_its_answer(node):
    await find(node)
    topic_id, unknown = await node.create(partition_count=2), UUID(int=99)
    items = [{"partition": index} for index in (0, 1, 2)]
    found = await ask_all(node, INITIALIZE, (topic_id, items), (unknown, items[:1]))
    assert [(each, item.partition, item.error_code) for each, item in found] == [
        (topic_id, 0, ErrorCode.NONE),
        (topic_id, 1, ErrorCode.NONE),
        (topic_id, 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (unknown, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


async def test_a_partition_that_is_named_twice_has_one_answer(node):
    await find(node)
    topic_id = await node.create()
    items = [{"partition": 0, "state_epoch": epoch} for epoch in (3, 2)]
    [(told_id, item)] = await ask_all(node, INITIALIZE, (topic_id, items[:1]), (topic_id, items[1:]))
    assert (told_id, item.error_code) == (topic_id, ErrorCode.FENCED_STATE_EPOCH)


async def test_an_older_state_epoch_is_fenced(node):
    await find(node)
    topic_id = await node.create()
    assert (await ask(node, INITIALIZE, topic_id, state_epoch=2)).error_code == ErrorCode.NONE
    assert (await ask(node, INITIALIZE, topic_id, state_epoch=1)).error_code == ErrorCode.FENCED_STATE_EPOCH


async def test_without_the_topic_this_is_no_coordinator_and_nothing_is_answered_by_nothing(node):
    topic_id = await node.create()
    for api_key in STATE_APIS:
        assert (await ask(node, api_key, topic_id)).error_code == ErrorCode.NOT_COORDINATOR
        assert await ask_all(node, api_key) == []
        assert await ask_all(node, api_key, (topic_id, [])) == []
        assert await ask_all(node, api_key, (topic_id, [{"partition": 0}]), group_id="") == []
    assert SHARE_GROUP_STATE_TOPIC not in node.core.controller.image.topics


async def test_the_topic_has_kafkas_configs(node):
    await find(node)
    assert dict(node.core.controller.image.configs(2, SHARE_GROUP_STATE_TOPIC)) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": "104857600",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
    }


async def test_a_broker_that_is_killed_has_the_state_again():
    async with new_broker() as broker:
        node = Node(broker)
        await find(node)
        topic_id = await node.create(partition_count=3)
        items = [{"partition": index, "start_offset": 10 + index, "state_epoch": 2} for index in range(3)]
        await ask_all(node, INITIALIZE, (topic_id, items))
        for _ in range(2):
            broker.kill()
            await broker.start()
            await broker.settle()
            found = await ask_all(node, SUMMARY, (topic_id, [{"partition": index} for index in range(3)]))
            assert [item[3:] for _, item in found] == [(2, 0, 10 + index, 0) for index in range(3)]
