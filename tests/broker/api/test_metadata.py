"""Metadata: which topics are told, which are created, and what of them is told."""

from uuid import UUID

import pytest

from odradek.broker.api.acl_messages import CLUSTER_OPERATIONS, NO_OPERATIONS, TOPIC_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.message_types.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseBroker
from tests.broker.api.in_process import Node, new_broker
from tests.broker.slow_broker import slow_broker

UNKNOWN_ID = UUID(int=7)


def named(*names):
    return [MetadataRequestTopic(name=name) for name in names]


async def ask(node, topics, version=None, **fields):
    return await node.ask(ApiKey.METADATA, MetadataRequest(topics=topics, **fields), version)


async def told(node, topics, version=None, **fields):
    return [(topic.error_code, topic.name) for topic in (await ask(node, topics, version, **fields)).topics]


async def test_null_asks_for_all_topics_and_an_empty_list_for_none(node):
    await node.create("a")
    await node.create("b")

    assert await told(node, None) == [(ErrorCode.NONE, "a"), (ErrorCode.NONE, "b")]
    assert await told(node, []) == []


async def test_a_topic_that_is_asked_for_twice_is_told_once(node):
    await node.create("a")

    assert await told(node, named("a", "nowhere", "a"), allow_auto_topic_creation=False) == [
        (ErrorCode.NONE, "a"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nowhere"),
    ]


@pytest.mark.parametrize("version", [12, 13])
async def test_a_topic_is_found_by_its_id(node, version):
    topic_id = await node.create("a")
    asked = [MetadataRequestTopic(topic_id=topic_id), MetadataRequestTopic(topic_id=UNKNOWN_ID)]

    known, unknown = (await ask(node, asked, version)).topics

    assert (known.error_code, known.name, known.topic_id) == (ErrorCode.NONE, "a", topic_id)
    assert (unknown.error_code, unknown.name, unknown.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic", [{"name": "a", "topic_id": UNKNOWN_ID}, {"name": None}], ids=["an id", "no name"])
async def test_before_version_12_an_id_or_no_name_refuses_all_topics(node, version, topic):
    await node.create("a")

    assert await told(node, [*named("a"), MetadataRequestTopic(**topic)], version) == [
        (ErrorCode.INVALID_REQUEST, "a"),
        (ErrorCode.INVALID_REQUEST, topic["name"] or ""),
    ]


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_topic_with_neither_name_nor_id_is_none_and_the_others_are_told(node, version, allowed):
    """By its source, Kafka fails there and answers UNKNOWN_SERVER_ERROR for every topic; that was read, not observed."""
    await node.create("a")

    answers = await told(node, [MetadataRequestTopic(), *named("a")], version, allow_auto_topic_creation=allowed)

    assert answers == [(ErrorCode.INVALID_TOPIC_EXCEPTION, None), (ErrorCode.NONE, "a")]


async def test_a_topic_is_created_where_client_and_broker_agree(node):
    assert await told(node, named("new"), allow_auto_topic_creation=False) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new")]
    assert await told(node, None) == []
    assert await told(node, named("new")) == [(ErrorCode.NONE, "new")]
    assert await told(node, None) == [(ErrorCode.NONE, "new")]


async def test_a_topic_is_not_created_where_the_broker_does_not_allow_it():
    async with new_broker(auto_create_topics_enable="false") as broker:
        node = Node(broker)

        assert await told(node, named("new")) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new")]
        assert await told(node, None) == []


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("name", ["no way", "", "..", "x" * 250])
async def test_a_name_that_no_topic_can_have_is_invalid_whether_topics_are_created_or_not(node, allowed, name):
    assert await told(node, named(name), allow_auto_topic_creation=allowed) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, name)]
    assert await told(node, None) == []


async def test_the_broker_is_told_as_its_clients_reach_it(node):
    response = await ask(node, [])

    assert response.brokers == [MetadataResponseBroker(node_id=1, host="127.0.0.1", port=9092, rack="r")]
    assert (response.controller_id, response.cluster_id) == (1, node.core.cluster_id)


@pytest.mark.parametrize("version", range(8, 11))
async def test_operations_are_told_where_they_are_asked_for(node, version):
    await node.create("a")

    silent = await ask(node, named("a"), version)
    of_topics = await ask(node, named("a"), version, include_topic_authorized_operations=True)
    of_cluster = await ask(node, named("a"), version, include_cluster_authorized_operations=True)

    assert [
        (each.topics[0].topic_authorized_operations, each.cluster_authorized_operations)
        for each in (silent, of_topics, of_cluster)
    ] == [(NO_OPERATIONS, NO_OPERATIONS), (TOPIC_OPERATIONS, NO_OPERATIONS), (NO_OPERATIONS, CLUSTER_OPERATIONS)]


async def test_each_partition_is_told_with_its_leader(node):
    await node.create("a", 2)

    (topic,) = (await ask(node, named("a"))).topics

    assert [(each.partition_index, each.error_code, each.leader_id, each.leader_epoch) for each in topic.partitions] == [
        (0, ErrorCode.NONE, 1, 0),
        (1, ErrorCode.NONE, 1, 0),
    ]
    assert {(*each.replica_nodes, *each.isr_nodes, *each.offline_replicas) for each in topic.partitions} == {(1, 1)}


async def test_internal_topics_are_said_to_be(node):
    await node.create("a")
    await node.stable_member()

    topics = (await ask(node, named("a", "__consumer_offsets"))).topics

    assert [topic.is_internal for topic in topics] == [False, True]


MANY = 2_000


@pytest.fixture
async def slow():
    async with slow_broker() as broker:
        topics = [CreatableTopic(name=name, num_partitions=MANY, replication_factor=1) for name in ("a", "b")]
        await broker.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=topics), 7)
        yield broker


@pytest.mark.parametrize("topics", [None, named("b", "nowhere", "a")], ids=["all", "named"])
async def test_many_partitions_are_described_over_several_turns(slow, topics):
    answer = slow.send(ApiKey.METADATA, MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    assert not answer.done
    described = {topic.name: topic for topic in (await slow.wait(answer)).topics}
    for name in ("a", "b"):
        assert described[name].error_code == ErrorCode.NONE
        assert [partition.partition_index for partition in described[name].partitions] == list(range(MANY))
    if topics is not None:
        assert list(described) == ["b", "nowhere", "a"]
        assert described["nowhere"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_that_is_deleted_while_all_are_described_is_left_out(slow):
    answer = slow.send(ApiKey.METADATA, MetadataRequest(topics=None), 12)
    slow.core.controller.delete_topics([slow.core.controller.image.topics["b"].topic_id])
    assert [topic.name for topic in (await slow.wait(answer)).topics] == ["a"]
