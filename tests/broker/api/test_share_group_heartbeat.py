"""ShareGroupHeartbeat and ShareGroupDescribe on a broker: the feature, the share coordinators, topics, configs of a group."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.api.consumer_requests import ask, set_configs
from tests.broker.api.share_requests import ShareNode, new_share_broker

GONE = ErrorCode.UNSUPPORTED_VERSION


def partitions(response):
    return {each.topic_id: list(each.partitions) for each in response.assignment.topic_partitions}


async def test_everything_is_refused_while_the_feature_is_off():
    async with new_share_broker() as broker:
        node = ShareNode(broker)
        await node.turn_off()
        assert (await node.beat()).error_code == GONE
        (group,) = (await ask(node, ApiKey.SHARE_GROUP_DESCRIBE, group_ids=["g"])).groups
        assert group.error_code == GONE
        for api_key in (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS):
            response = await ask(node, api_key, group_id="g", topics=[])
            assert (response.error_code, bool(response.error_message)) == (GONE, True)


async def test_a_member_has_its_partitions_once_the_share_coordinators_have_the_states(shares):
    topic_id = await shares.create(partition_count=2)
    response = await shares.beat()
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m", 2, 5_000)
    assert partitions(response) == {}
    await shares.settle()
    assert {key[1:]: state.start_offset for key, state in shares.states.states.items()} == {(topic_id, 0): -1, (topic_id, 1): -1}
    assert partitions(await shares.beat("m", 2)) == {topic_id: [0, 1]}
    refused = await shares.beat("x", 3)
    assert (refused.error_code, refused.error_message) == (ErrorCode.UNKNOWN_MEMBER_ID, "group g has no member x")


async def test_a_failed_initialization_is_tried_again_by_the_next_heartbeat(shares):
    topic_id = await shares.create()
    shares.states.failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
    await shares.beat()
    await shares.settle()
    shares.states.failure = None
    assert (await shares.beat("m", 2)).assignment is None
    await shares.settle()
    assert partitions(await shares.beat("m", 2)) == {topic_id: [0]}


async def test_topics_that_grow_and_go_change_the_assignment(shares):
    topic_id = await shares.stable()
    growth = [CreatePartitionsTopic(name="t", count=3, assignments=None)]
    await shares.ask(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest(topics=growth))
    await shares.beat("m", 3)
    await shares.settle()
    assert shares.states.states["g", topic_id, 2].start_offset == 0
    assert partitions(await shares.beat("m", 4)) == {topic_id: [0, 1, 2]}
    await shares.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
    assert partitions(await shares.beat("m", 5)) == {}


async def test_a_member_has_an_id_that_is_not_too_long(shares):
    codes = [(await shares.beat("m" * length)).error_code for length in (0, 36, 37)]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


async def test_a_group_has_configs_of_its_own_within_the_brokers_limits(shares):
    await shares.create()
    assert (await set_configs(shares, "g", share_heartbeat_interval_ms=7_000))[0] == ErrorCode.NONE
    assert (await shares.beat()).heartbeat_interval_ms == 7_000
    for name, value in {
        "share.session.timeout.ms": 70_000,
        "share.heartbeat.interval.ms": 4_000,
        "share.delivery.count.limit": 11,
        "share.partition.max.record.locks": 5_000,
        "share.record.lock.duration.ms": 10_000,
        "share.auto.offset.reset": "by_duration:-PT1H",
        "share.isolation.level": "dirty",
    }.items():
        assert (await set_configs(shares, "g", **{name: value}))[0] == ErrorCode.INVALID_CONFIG, name
    for value in ("earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S"):
        assert (await set_configs(shares, "g", **{"share.auto.offset.reset": value}))[0] == ErrorCode.NONE, value
