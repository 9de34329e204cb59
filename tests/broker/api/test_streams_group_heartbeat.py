"""Streams groups on a broker: the feature, internal topics that are made, configs of a group, offsets of members."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_heartbeat import Subtopology, Topology
from odradek.protocol.message_types.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.api.consumer_requests import commit, fetch, set_configs
from tests.broker.api.in_process import new_broker
from tests.broker.api.streams_requests import COUNTS, TOPOLOGY, StreamsNode

OFF = ErrorCode.UNSUPPORTED_VERSION


def tasks(answer):
    return {each.subtopology_id: list(each.partitions) for each in answer.active_tasks}


async def test_everything_is_refused_while_the_feature_is_off():
    async with new_broker() as broker:
        node = StreamsNode(broker)
        update = FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
        await node.ask(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[update]))
        answer = await node.beat()
        assert (answer.error_code, answer.active_tasks, answer.partitions_by_user_endpoint) == (OFF, None, None)
        assert (await node.describe()).error_code == OFF
    async with new_broker(group_coordinator_rebalance_protocols="classic,consumer") as broker:
        assert (await StreamsNode(broker).beat()).error_code == OFF


async def test_internal_topics_are_made_as_the_topology_says_and_tasks_assigned(streams):
    (status,) = (await streams.beat()).status
    assert status == (3, "Internal topics are missing: counts, words")
    image = streams.core.controller.image
    assert {name: len(image.topics[name].partitions) for name in ("counts", "words")} == {"counts": 3, "words": 3}
    assert image.configs(2, "counts") == {"cleanup.policy": "compact"}
    answer = await streams.beat("m", 2)
    assert (answer.member_epoch, answer.status, tasks(answer)) == (3, [], {"0": [0, 1], "1": [0, 1, 2]})
    assert answer.acceptable_recovery_lag == 10_000


async def test_a_topic_that_cannot_be_made_is_told_until_the_error_is_old(streams):
    broken = TOPOLOGY.subtopologies[1]._replace(state_changelog_topics=[COUNTS._replace(replication_factor=3)])
    topology = Topology(subtopologies=[TOPOLOGY.subtopologies[0], broken])
    await streams.beat(topology=topology)
    (status,) = (await streams.beat("m", 2)).status
    assert status.status_detail.startswith("Internal topics are missing: counts; Creation failed: counts (")
    await streams.broker.advance(10_000)
    (status,) = (await streams.beat("m", 3)).status
    assert status.status_detail == "Internal topics are missing: counts"


async def test_a_topology_of_kafkas_own_topics_or_with_bad_names_is_refused(streams):
    for name, reason in (
        ("__consumer_offsets", "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited."),
        ("a/b", "Topic names a/b are not valid topic names."),
    ):
        answer = await streams.beat(topology=Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=[name])]))
        assert (answer.error_code, answer.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)


async def test_members_commit_in_the_epoch_of_their_tasks_or_later(streams):
    await streams.beat()
    await streams.beat("m", 2)
    assert [await commit(streams, epoch) for epoch in (3, 2, 4)] == [
        ErrorCode.NONE,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    ]
    # Raise the group's epoch; the task stays with its member.
    await set_configs(streams, "g", streams_num_standby_replicas=1)
    assert (await streams.beat("m", 3)).member_epoch == 4
    assert await commit(streams, 3) == ErrorCode.NONE
    assert await commit(streams, -1, "") == await commit(streams, 3, "x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert [await fetch(streams, "m", epoch) for epoch in (4, 3)] == [ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH]


async def test_the_configs_of_a_group_have_the_brokers_limits(streams):
    assert (await set_configs(streams, "g", streams_heartbeat_interval_ms=7_000)) == (ErrorCode.NONE, None)
    assert (await streams.beat()).heartbeat_interval_ms == 7_000
    for name, value in (
        ("streams_heartbeat_interval_ms", 1_000),
        ("streams_session_timeout_ms", 100_000),
        ("streams_num_standby_replicas", 3),
        ("streams_assignor_name", "none"),
    ):
        assert (await set_configs(streams, "g", **{name: value}))[0] == ErrorCode.INVALID_CONFIG
