"""WriteShareGroupState: what is written is read, in both versions, and old records are pruned."""

from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.message_types.write_share_group_state import StateBatch
from tests.broker.api.in_process import Node, new_broker
from tests.broker.api.share_state_requests import INITIALIZE, READ, SUMMARY, WRITE, ask, find


async def test_what_is_written_is_read(node):
    await find(node)
    topic_id = await node.create()
    await ask(node, INITIALIZE, topic_id, start_offset=3)
    written = {"leader_epoch": 4, "start_offset": 3, "state_batches": [StateBatch(3, 8, 2, 1)]}
    told = await ask(node, WRITE, topic_id, delivery_complete_count=6, **written)
    assert (told.error_code, told.error_message) == (ErrorCode.NONE, None)
    assert list(map(tuple, (await ask(node, READ, topic_id, leader_epoch=4)).state_batches)) == [(3, 8, 2, 1)]
    assert (await ask(node, SUMMARY, topic_id)).delivery_complete_count == 6
    # Version 0 has no count.
    assert (await ask(node, WRITE, topic_id, 0, **written | {"start_offset": 4})).error_code == ErrorCode.NONE
    assert (await ask(node, SUMMARY, topic_id))[3:] == (0, 4, 4, -1)
    assert (await ask(node, WRITE, topic_id, leader_epoch=3)).error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_the_topic_loses_old_records_and_the_state_of_deleted_topics():
    async with new_broker(
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_state_topic_prune_interval_ms="1000",
        share_coordinator_snapshot_update_records_per_snapshot="1",
    ) as broker:
        node = Node(broker)
        await find(node)
        topic_id = await node.create()
        await ask(node, INITIALIZE, topic_id, start_offset=0)
        for _ in range(4):
            await ask(node, WRITE, topic_id)
        log = node.core.partitions.require(SHARE_GROUP_STATE_TOPIC, 0).require_log()
        assert (log.log_start_offset, log.log_end_offset) == (0, 5)
        await broker.advance(1000)
        assert log.log_start_offset == 4
        await node.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        await broker.advance(1000)
        assert (log.log_start_offset, log.log_end_offset) == (5, 6)
