"""The five APIs for the state of share partitions, on one broker: answers by partition, errors, and the topic behind."""

from uuid import UUID

from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages import messages
from tests.broker.api.in_process import Node, new_broker

_TOPICS = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "InitializeStateData",
    ApiKey.READ_SHARE_GROUP_STATE: "ReadStateData",
    ApiKey.WRITE_SHARE_GROUP_STATE: "WriteStateData",
    ApiKey.DELETE_SHARE_GROUP_STATE: "DeleteStateData",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "ReadStateSummaryData",
}


async def ask(node, api_key, *topics, group_id="g", version=None):
    """The results as (topic id, item), for topics of (topic id, items of the request as dictionaries)."""
    classes = messages(api_key)
    asked = [
        getattr(classes, _TOPICS[api_key])(topic_id=topic_id, partitions=[classes.PartitionData(**item) for item in items])
        for topic_id, items in topics
    ]
    response = await node.ask(api_key, classes.request(group_id=group_id, topics=asked), version)
    return [(topic.topic_id, item) for topic in response.results for item in topic.partitions]


async def find(node):
    """Have the topic created, as the sender of these requests does."""
    response = await node.ask(
        ApiKey.FIND_COORDINATOR,
        messages(ApiKey.FIND_COORDINATOR).request(key_type=2, coordinator_keys=("g:AQIDBAUGBwgJCgsMDQ4PEA:0",)),
    )
    assert response.coordinators[0].error_code == ErrorCode.NONE


async def test_without_the_topic_this_is_no_coordinator(node):
    topic_id = await node.create()
    for api_key in _TOPICS:
        [(_, item)] = await ask(node, api_key, (topic_id, [{"partition": 0}]))
        assert item.error_code == ErrorCode.NOT_COORDINATOR
    assert SHARE_GROUP_STATE_TOPIC not in node.core.controller.image.topics


async def test_state_is_initialized_written_read_and_deleted_by_partition(node):
    await find(node)
    topic_id = await node.create(partition_count=2)
    unknown = UUID(int=99)
    found = await ask(
        node,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        (topic_id, [{"partition": index, "start_offset": 3 + index} for index in (0, 1, 2)]),
        (unknown, [{"partition": 0}]),
    )
    assert [(each, item.partition, item.error_code) for each, item in found] == [
        (topic_id, 0, ErrorCode.NONE),
        (topic_id, 1, ErrorCode.NONE),
        (topic_id, 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (unknown, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    batch = messages(ApiKey.WRITE_SHARE_GROUP_STATE).StateBatch(first_offset=3, last_offset=8, delivery_state=2, delivery_count=1)
    written = {"partition": 0, "leader_epoch": 4, "start_offset": 3, "delivery_complete_count": 6, "state_batches": [batch]}
    [(_, item)] = await ask(node, ApiKey.WRITE_SHARE_GROUP_STATE, (topic_id, [written]))
    assert (item.error_code, item.error_message) == (ErrorCode.NONE, None)
    read = await ask(
        node,
        ApiKey.READ_SHARE_GROUP_STATE,
        (topic_id, [{"partition": 0, "leader_epoch": 4}, {"partition": 1, "leader_epoch": 0}]),
    )
    assert [(item.partition, item.start_offset, list(map(tuple, item.state_batches))) for _, item in read] == [
        (0, 3, [(3, 8, 2, 1)]),
        (1, 4, []),
    ]
    [(_, item)] = await ask(node, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (topic_id, [{"partition": 0}]))
    assert item[3:] == (0, 4, 3, 6)
    [(_, item)] = await ask(node, ApiKey.DELETE_SHARE_GROUP_STATE, (topic_id, [{"partition": 0}]))
    assert item.error_code == ErrorCode.NONE
    [(_, item)] = await ask(node, ApiKey.READ_SHARE_GROUP_STATE, (topic_id, [{"partition": 0, "leader_epoch": 4}]))
    assert (item.error_code, item.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )


async def test_a_request_that_names_nothing_is_answered_by_nothing(node):
    topic_id = await node.create()
    for api_key in _TOPICS:
        assert await ask(node, api_key) == []
        assert await ask(node, api_key, (topic_id, [])) == []
        assert await ask(node, api_key, (topic_id, [{"partition": 0}]), group_id="") == []
    assert SHARE_GROUP_STATE_TOPIC not in node.core.controller.image.topics


async def test_the_topic_is_kafkas_and_loses_the_state_of_deleted_topics_and_old_records():
    async with new_broker(
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_state_topic_prune_interval_ms="1000",
        share_coordinator_snapshot_update_records_per_snapshot="1",
    ) as broker:
        node = Node(broker)
        await find(node)
        topic_id = await node.create()
        await ask(node, ApiKey.INITIALIZE_SHARE_GROUP_STATE, (topic_id, [{"partition": 0, "start_offset": 0}]))
        configs = node.core.controller.image.configs(2, SHARE_GROUP_STATE_TOPIC)
        assert dict(configs) == {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": "104857600",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
        }
        for _ in range(4):
            await ask(node, ApiKey.WRITE_SHARE_GROUP_STATE, (topic_id, [{"partition": 0}]))
        log = node.core.partitions.require(SHARE_GROUP_STATE_TOPIC, 0).require_log()
        assert (log.log_start_offset, log.log_end_offset) == (0, 5)
        await node.broker.advance(1000)
        assert log.log_start_offset == 4
        await node.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        await node.broker.advance(1000)
        assert (log.log_start_offset, log.log_end_offset) == (5, 6)


async def test_a_broker_that_is_killed_has_the_state_again():
    async with new_broker(share_coordinator_state_topic_num_partitions="2") as broker:
        node = Node(broker)
        await find(node)
        topic_id = await node.create(partition_count=3)
        items = [{"partition": index, "start_offset": 10 + index, "state_epoch": 2} for index in range(3)]
        await ask(node, ApiKey.INITIALIZE_SHARE_GROUP_STATE, (topic_id, items))
        for _ in range(2):
            broker.kill()
            await broker.start()
            await broker.settle()
            items = [{"partition": index} for index in range(3)]
            found = await ask(node, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (topic_id, items))
            assert [item[3:] for _, item in found] == [(2, 0, 10 + index, 0) for index in range(3)]
