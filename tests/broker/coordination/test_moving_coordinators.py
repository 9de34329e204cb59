"""A coordinator's shard goes where its partition is led: it is unloaded, and loaded again from the log."""

import pytest

from odradek.common.context import RequestContext, Session
from odradek.coordinator.share.state import PartitionState, SharePartitionKey, StateBatch
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.hashing import partition_for
from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest
from odradek.protocol.message_types.end_txn import EndTxnRequest
from odradek.protocol.message_types.heartbeat import HeartbeatRequest
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.message_types.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from tests.broker.api.in_process import Node, join_request, new_broker

OTHER = 2
GROUPS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"


@pytest.fixture
async def node():
    async with new_broker() as broker:
        yield Node(broker)


def elect(node, topic_name, coordinated_id, leader):
    """As if the metadata told of another leader of an id's partition."""
    controller = node.core.controller
    topic = controller.image.topics[topic_name]
    index = partition_for(coordinated_id, len(topic.partitions))
    change = PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=leader)
    controller._publishers.publish(controller.image.replay([change]), controller.image)


async def heartbeat(node, group_id, member_id, generation):
    request = HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=generation)
    return (await node.ask(ApiKey.HEARTBEAT, request)).error_code


async def test_a_group_is_not_coordinated_where_its_partition_is_not_led(node):
    member_id, generation = await node.stable_member("g")
    elect(node, GROUPS, "g", OTHER)
    assert await heartbeat(node, "g", member_id, generation) == ErrorCode.NOT_COORDINATOR


async def test_a_group_goes_on_with_no_member_rejoining_when_the_leadership_comes(node):
    member_id, generation = await node.stable_member("g")
    elect(node, GROUPS, "g", OTHER)
    elect(node, GROUPS, "g", node.core.node_id)
    await node.broker.advance(1_000)
    assert await heartbeat(node, "g", member_id, generation) == ErrorCode.NONE


async def test_a_join_that_waits_is_sent_to_the_next_coordinator(node):
    await node.stable_member("g")
    context = RequestContext(ApiKey.JOIN_GROUP, 3, 1, "c", Session("PLAINTEXT", ("127.0.0.1", 1)))
    waiting = node.core.dispatcher.call(context, join_request("g", member_id=""))
    await node.broker.advance(100)
    assert not waiting.done
    elect(node, GROUPS, "g", OTHER)
    await node.broker.advance(0)
    assert waiting.response.error_code == ErrorCode.NOT_COORDINATOR


async def test_a_producer_goes_on_when_the_leadership_comes(node):
    producer_id, epoch = await node.producer("tx")
    elect(node, TRANSACTIONS, "tx", OTHER)
    request = EndTxnRequest(transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, committed=True)
    assert (await node.ask(ApiKey.END_TXN, request, 3)).error_code == ErrorCode.NOT_COORDINATOR
    elect(node, TRANSACTIONS, "tx", node.core.node_id)
    await node.broker.advance(1_000)
    assert await node.producer("tx") == (producer_id, epoch + 1)


async def test_an_id_belongs_to_one_of_all_partitions_though_some_are_led_elsewhere(node):
    await node.stable_member("g")
    before = {name: node.core.groups.runtime.partition_for(name) for name in ("g", "h", "i", "j")}
    elect(node, GROUPS, "g", OTHER)
    assert {name: node.core.groups.runtime.partition_for(name) for name in before} == before


async def test_after_a_restart_only_what_is_led_here_is_loaded(node):
    await node.stable_member("g")
    index = node.core.groups.runtime.partition_for("g")
    await node.broker.stop()
    await node.broker.start()
    node.core.partitions.get(GROUPS, index).become_follower(OTHER, 9)
    assert index not in node.core.groups.runtime.partitions()
    assert len(node.core.groups.runtime.partitions()) == 2


async def test_too_few_replicas_in_sync_refuse_a_transaction_at_once(node):
    """As acks=all does: an append that cannot be committed would leave the transactional id pending."""
    producer_id, epoch = await node.producer("tx")
    partition = node.core.partitions.require(TRANSACTIONS, node.core.transactions.runtime.partition_for("tx"))
    partition.leader.followers = TooFew()
    request = EndTxnRequest(transactional_id="tx", producer_id=producer_id, producer_epoch=epoch, committed=False)
    for _ in range(2):
        assert (await node.ask(ApiKey.END_TXN, request, 5)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    partition.leader.followers = None
    assert (await node.ask(ApiKey.END_TXN, request, 5)).error_code == ErrorCode.NONE


async def test_a_group_behind_writes_that_are_not_replicated_is_not_deleted(node):
    """As Kafka 4.4 answers: each COORDINATOR_NOT_AVAILABLE after five seconds, OffsetDelete behind DeleteGroups, too."""
    await node.create()
    assert await commit(node) == ErrorCode.NONE
    partition = node.core.partitions.require(GROUPS, node.core.groups.runtime.partition_for("g"))
    partition.leader.followers = TooFew()
    for ask in (commit, delete_group, delete_offset):
        asked_ms = node.broker.clock.monotonic_ms()
        assert await ask(node) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert node.broker.clock.monotonic_ms() == asked_ms + 5_000
    partition.leader.followers = None
    partition.replication_changed()
    assert await delete_group(node) == ErrorCode.NONE


async def commit(node):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    return (await node.ask(ApiKey.OFFSET_COMMIT, request, 8)).topics[0].partitions[0].error_code


async def delete_group(node):
    return (await node.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["g"]))).results[0].error_code


async def delete_offset(node):
    topic = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    return (await node.ask(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id="g", topics=[topic]))).error_code


class TooFew:
    """The in-sync replicas of a partition that lacks some."""

    def require_enough(self):
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def high_watermark(self, _offset, _log_end_offset, high_watermark):
        return high_watermark


async def test_a_share_partitions_state_goes_with_the_leadership_and_the_persister_waits_for_it(node):
    key = SharePartitionKey("g", await node.create(), 0)
    persister = node.core.share_persister
    initialized = persister.initialize(key, 0, 5)
    await node.broker.settle()
    written = persister.write(key, 0, 0, 5, 3, [StateBatch(5, 7, 2, 1)])
    await node.broker.settle()
    assert (initialized.done, initialized.response, written.done, written.response) == (True, None, True, None)
    elect(node, SHARES, key.coordinator_key, OTHER)
    waiting = persister.read(key, 2)
    await node.broker.advance(500)
    assert not waiting.done
    elect(node, SHARES, key.coordinator_key, node.core.node_id)
    await node.broker.advance(2_000)
    assert waiting.response == PartitionState(0, 2, 5, 3, (StateBatch(5, 7, 2, 1),))
    # The former leader's write was under way.
    late = persister.write(key, 0, 0, 8, 0, ())
    await node.broker.settle()
    assert late.response.code == ErrorCode.FENCED_LEADER_EPOCH
