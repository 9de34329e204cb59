"""odradek's controller in a process of its own, and odradek's observer: the log is followed byte for byte, over restarts."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import describe_cluster, describe_quorum
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.campaigns.kafka_tools.odradek_controller import NODE_ID, OdradekController
from tests.controller.quorum.real_quorum import BROKER_ID, RealQuorum


@pytest.fixture
def controller(tmp_path):
    made = OdradekController(tmp_path / "controller", {"metadata.max.idle.interval.ms": "20"})
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
async def quorum(controller):
    made = RealQuorum(controller)
    yield made
    made.close()


async def described(quorum):
    partition = describe_quorum.RequestPartitionData(0)
    topic = describe_quorum.RequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = await quorum.ask(NODE_ID, ApiKey.DESCRIBE_QUORUM, describe_quorum.DescribeQuorumRequest(topics=[topic]))
    return response.topics[0].partitions[0], response.nodes


async def test_an_observer_has_the_controllers_log_over_a_restart_with_another_epoch(tmp_path, controller, quorum):
    async with quorum.observing(tmp_path / "copy") as observed:
        await observed.has_applied(5)
        assert observed.image.features["metadata.version"] == 33
        before = observed.observer.leader
        controller.kill9()
        controller.start()
        await observed.until(lambda: observed.observer.leader.epoch == before.epoch + 1)
        end_offset = observed.log.end_offset
        await observed.has_applied(end_offset + 3)
        assert controller.batches().startswith(observed.data)


def oldest_snapshot(controller):
    return min((path.name for path in controller.log_dir().glob("*.checkpoint")), default="")


async def test_an_observer_begins_at_a_snapshot_where_the_log_is_cut_off(tmp_path):
    settings = {
        "metadata.max.idle.interval.ms": "5",
        "metadata.log.max.record.bytes.between.snapshots": "700",
        "metadata.max.retention.bytes": "1",
    }
    controller = OdradekController(tmp_path / "controller", settings)
    try:
        controller.start()
        # The log begins behind the first snapshot when that has been removed.
        until(lambda: oldest_snapshot(controller))
        first = oldest_snapshot(controller)
        until(lambda: oldest_snapshot(controller) not in ("", first))
        quorum = RealQuorum(controller)
        async with quorum.observing(tmp_path / "copy") as observed:
            await observed.until(lambda: observed.follower.is_caught_up and observed.log.start_offset > 0)
            assert observed.image.features["metadata.version"] == 33
            await observed.has_applied(observed.log.start_offset + 20)
        quorum.close()
    finally:
        controller.close()


async def test_the_quorum_is_its_one_voter_and_the_observers_that_fetch(tmp_path, controller, quorum):
    async with quorum.observing(tmp_path / "copy") as observed:
        await observed.has_applied(5)
        partition, nodes = await described(quorum)
        assert (partition.leader_id, partition.leader_epoch) == (NODE_ID, 1)
        assert [voter.replica_id for voter in partition.current_voters] == [NODE_ID]
        [observer] = partition.observers
        assert observer.replica_id == BROKER_ID
        assert 5 <= observer.log_end_offset <= partition.high_watermark
        assert observer.last_caught_up_timestamp > 0
        assert [(node.node_id, node.listeners[0].port) for node in nodes] == [(NODE_ID, controller.ports[NODE_ID])]


async def test_a_controller_tells_the_clusters_id_and_itself(controller, quorum):
    response = await quorum.ask(NODE_ID, ApiKey.DESCRIBE_CLUSTER, describe_cluster.DescribeClusterRequest(endpoint_type=2))
    assert (response.cluster_id, response.controller_id) == (controller.cluster_id, NODE_ID)
    assert [(node.broker_id, node.port) for node in response.brokers] == [(NODE_ID, controller.ports[NODE_ID])]
    refusal = await quorum.ask(NODE_ID, ApiKey.DESCRIBE_CLUSTER, describe_cluster.DescribeClusterRequest())
    assert refusal.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
