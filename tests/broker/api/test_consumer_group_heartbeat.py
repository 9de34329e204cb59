"""ConsumerGroupHeartbeat on a broker: the feature, the topics of the image, the configs of a group, offsets of members."""

import re

import pytest

from odradek.common.config.dynamic import ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.api.consumer_requests import ask, beat, commit, fetch, set_configs
from tests.broker.api.in_process import Node, new_broker

JOINING = {
    "group_id": "g",
    "member_id": "",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": (),
}
STALE, UNKNOWN = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID


def told(response):
    """The epoch, and how many partitions the assignment has."""
    assert response.error_code == ErrorCode.NONE, response
    return response.member_epoch, sum(len(each.partitions) for each in response.assignment.topic_partitions)


async def test_a_member_joins_and_is_assigned_the_topics_partitions(node):
    topic_id = await node.create(partition_count=2)
    response = await beat(node)
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m", 2, 5_000)
    assert [(each.topic_id, list(each.partitions)) for each in response.assignment.topic_partitions] == [(topic_id, [0, 1])]


async def test_a_member_without_an_id_is_given_a_uuid_as_kafka_writes_it(node):
    member_id = (await ask(node, ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, **JOINING)).member_id
    assert re.fullmatch(r"[0-9A-Za-z_][0-9A-Za-z_-]{21}", member_id)


async def test_a_refusal_says_why(node):
    response = await beat(node, "m", 3)
    assert (response.error_code, response.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "there is no group g")


async def test_topics_that_come_grow_and_go_change_the_assignment():
    async with new_broker(group_consumer_assignment_interval_ms="0") as broker:
        node = Node(broker)
        assert told(await beat(node)) == (2, 0)
        await node.create(partition_count=2)
        assert told(await beat(node, "m", 2)) == (3, 2)
        await node.ask(
            ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)])
        )
        assert told(await beat(node, "m", 3)) == (4, 5)
        await node.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        assert told(await beat(node, "m", 4, topic_partitions=())) == (5, 0)


async def test_a_regular_expression_finds_topics(node):
    await node.create("tea")
    await beat(node, subscribed_topic_names=None, subscribed_topic_regex="t.*")
    await node.broker.advance(1_000)
    assert told(await beat(node, subscribed_topic_names=None, subscribed_topic_regex="t.*")) == (2, 1)


async def test_subscribing_creates_no_topic(node):
    assert told(await beat(node, subscribed_topic_names=["nowhere"])) == (2, 0)
    assert "nowhere" not in node.core.controller.image.topics


async def test_without_the_protocol_a_client_is_told_so():
    async with new_broker(group_coordinator_rebalance_protocols="classic") as broker:
        await refused(Node(broker))


async def test_without_the_feature_a_client_is_told_so(node):
    node.core.controller.update_features([("group.version", 0, 2)])
    await refused(node)


async def refused(node):
    assert (await beat(node)).error_code == ErrorCode.UNSUPPORTED_VERSION
    (group,) = (await ask(node, ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=["g"])).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert not (await ask(node, ApiKey.LIST_GROUPS)).groups


async def test_a_member_commits_with_its_epoch(node):
    await node.create()
    await beat(node)
    assert await commit(node, 2) == ErrorCode.NONE
    assert [await commit(node, epoch) for epoch in (1, 3)] == [STALE, STALE]
    assert [await commit(node, 2, "other"), await commit(node, -1, "")] == [UNKNOWN, UNKNOWN]
    assert await commit(node, 2, version=8) == ErrorCode.UNSUPPORTED_VERSION


async def test_a_member_fetches_with_its_epoch_and_anybody_without_one(node):
    await node.create()
    await beat(node)
    assert [await fetch(node, "m", 2), await fetch(node, None, -1)] == [ErrorCode.NONE, ErrorCode.NONE]
    assert [await fetch(node, "m", 1), await fetch(node, "other", 2)] == [STALE, UNKNOWN]


async def test_an_older_epoch_will_do_for_a_partition_that_the_member_has_had_since_then():
    async with new_broker(group_consumer_assignment_interval_ms="0") as broker:
        node = Node(broker)
        await node.create()
        await beat(node)
        assert told(await beat(node, subscribed_topic_names=["t", "u"])) == (3, 1)
        assert [await commit(node, 2), await commit(node, 1)] == [ErrorCode.NONE, STALE]


async def test_a_group_has_configs_of_its_own(node):
    code, _ = await set_configs(node, "g", consumer_heartbeat_interval_ms=6000, consumer_session_timeout_ms=50000)
    assert code == ErrorCode.NONE
    intervals = [(await beat(node, group_id=group)).heartbeat_interval_ms for group in ("g", "h")]
    assert intervals == [6_000, 5_000]
    listed = await ask(node, ApiKey.LIST_CONFIG_RESOURCES, resource_types=[ResourceType.GROUP])
    assert [each.resource_name for each in listed.config_resources] == ["g"]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"consumer_heartbeat_interval_ms": 4999}, "less than group.consumer.min.heartbeat.interval.ms, which is 5000"),
        ({"consumer_session_timeout_ms": 60001}, "more than group.consumer.max.session.timeout.ms, which is 60000"),
        ({"consumer_session_timeout_ms": "soon"}, "consumer.session.timeout.ms"),
        ({"consumer_nothing": 1}, "groups have no config consumer.nothing"),
    ],
)
async def test_a_config_out_of_the_brokers_limits_is_refused(node, configs, message):
    code, reason = await set_configs(node, "g", **configs)
    assert code == ErrorCode.INVALID_CONFIG
    assert message in reason


async def test_no_group_has_no_configs(node):
    code, _ = await set_configs(node, "", consumer_session_timeout_ms=50000)
    assert code == ErrorCode.INVALID_REQUEST


async def test_a_restarted_broker_knows_the_group(node):
    await node.create()
    await beat(node)
    await node.restart()
    await node.broker.settle()
    response = await beat(node, "m", 2)
    assert (response.error_code, response.member_epoch) == (ErrorCode.NONE, 2)
