"""Brokers live in a cluster under Apache Kafka's own controllers."""

import asyncio
from contextlib import asynccontextmanager, suppress
from random import Random
from uuid import uuid4

import pytest
import pytest_asyncio

from odradek.client.node_client import connect_to
from odradek.controller.metadata.features import SUPPORTED_FEATURES
from odradek.controller.quorum.broker_lifecycle import BrokerLifecycle, BrokerState, LifecycleConfig, Registration
from odradek.controller.quorum.controller_channel import ControllerChannel
from odradek.controller.quorum.leader_discovery import QuorumNode
from odradek.controller.quorum.start import ClusterIdUnknown, find_cluster_id
from odradek.protocol.message_types.broker_registration import Listener
from tests.controller.quorum.real_quorum import BROKER_ID, TIMEOUT_S, quorum_of_kafka

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
OTHER_ID = 8
SESSION_MS = 4_000
SETTINGS = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "controller.quorum.election.timeout.ms": "500",
    "metadata.max.idle.interval.ms": "100",
}


class Living:
    """A broker that does nothing but live."""

    def __init__(self, quorum, observed, node_id, port):
        self.channel = ControllerChannel(f"broker-{node_id}", lambda at: connect_to(*at), quorum.timer, Random(node_id))
        registration = Registration(
            node_id=node_id,
            cluster_id=quorum.controllers.cluster_id,
            incarnation_id=uuid4(),
            listeners=[Listener("PLAINTEXT", "127.0.0.1", port, 0)],
            features=[(name, *levels) for name, levels in SUPPORTED_FEATURES.items()],
            log_dirs=[uuid4()],
            rack="r",
        )
        self.lifecycle = BrokerLifecycle(
            registration,
            self.channel,
            # The offset of the last record that is applied.
            lambda: observed.log.applied_offset - 1,
            quorum.timer,
            Random(node_id),
            LifecycleConfig(heartbeat_interval_ms=200, session_timeout_ms=SESSION_MS),
        )
        self.lifecycle.on_caught_up = self.lifecycle.ready_to_unfence
        self.channel.set_leader(observed.observer.leader)
        self.task = asyncio.get_running_loop().create_task(self.lifecycle.run())

    async def vanish(self):
        """As kill -9 does."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        self.channel.close()


class Cluster:
    """An observer, and brokers beside it."""

    def __init__(self, quorum, observed):
        self.quorum, self.observed = quorum, observed
        self.image = observed.image
        self.brokers = []
        observed.observer.on_leader_change = self._set_leader

    def _set_leader(self, leader):
        for broker in self.brokers:
            broker.channel.set_leader(leader)

    def begin(self, node_id=BROKER_ID, port=9092):
        broker = Living(self.quorum, self.observed, node_id, port)
        self.brokers.append(broker)
        return broker

    async def runs(self, node_id=BROKER_ID, port=9092):
        """A broker that is unfenced, and in the image so."""
        broker = self.begin(node_id, port)
        await self.observed.until(lambda: broker.lifecycle.state == BrokerState.RUNNING)
        await self.observed.until(lambda: not self.image.kept.brokers[node_id].fenced)
        return broker


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def quorum(tmp_path_factory):
    async with quorum_of_kafka(tmp_path_factory.mktemp("controllers"), 3, SETTINGS) as made:
        yield made


@asynccontextmanager
async def clustered(quorum, directory):
    async with quorum.observing(directory) as observed:
        cluster = Cluster(quorum, observed)
        try:
            yield cluster
        finally:
            for broker in cluster.brokers:
                await broker.vanish()


def nodes_of(quorum):
    return [QuorumNode(None, "127.0.0.1", port) for port in quorum.controllers.ports.values()]


async def test_any_controller_tells_the_id_of_its_cluster(quorum):
    for node in nodes_of(quorum):
        found = await find_cluster_id([node], lambda at: connect_to(*at), quorum.timer, Random(1), timeout_ms=TIMEOUT_S * 1000)
        assert found == quorum.controllers.cluster_id


async def test_a_cluster_whose_controllers_are_away_has_no_id(quorum):
    nowhere = QuorumNode(None, "127.0.0.1", 1)
    with pytest.raises(ClusterIdUnknown, match=r"127\.0\.0\.1:1"):
        await find_cluster_id([nowhere], lambda at: connect_to(*at), quorum.timer, Random(1), timeout_ms=300)


async def test_a_broker_is_registered_and_unfenced(quorum, tmp_path):
    async with clustered(quorum, tmp_path) as cluster:
        broker = await cluster.runs(port=9099)
        registered = cluster.image.kept.brokers[BROKER_ID]
        assert registered.broker_epoch == broker.lifecycle.broker_epoch
        assert [(each.name, each.host, each.port) for each in registered.end_points] == [("PLAINTEXT", "127.0.0.1", 9099)]
        assert (registered.rack, len(registered.log_dirs), registered.fenced) == ("r", 1, False)
        placed = await quorum.create_topics(["placed"])
        assert not placed.topics[0].error_code


async def test_a_killed_broker_registers_again_when_its_session_is_over(quorum, tmp_path):
    async with clustered(quorum, tmp_path) as cluster:
        killed = await cluster.runs()
        await killed.vanish()
        again = cluster.begin()
        await asyncio.sleep(1)
        assert again.lifecycle.broker_epoch == -1
        await cluster.observed.until(lambda: again.lifecycle.state == BrokerState.RUNNING)
        assert again.lifecycle.broker_epoch > killed.lifecycle.broker_epoch


async def test_a_broker_lives_on_under_the_next_controller(quorum, tmp_path):
    async with clustered(quorum, tmp_path) as cluster:
        broker = await cluster.runs()
        before, _ = await quorum.active()
        quorum.controllers.kill9(before)
        observer = cluster.observed.observer
        await cluster.observed.until(lambda: observer.leader is not None and observer.leader.node_id != before)
        after, _ = await quorum.active()
        assert after != before
        await asyncio.sleep(SESSION_MS * 1.5 / 1000)
        assert not cluster.image.kept.brokers[BROKER_ID].fenced
        assert broker.lifecycle.state == BrokerState.RUNNING
        quorum.controllers.start(before)


async def test_a_controlled_shutdown_ends_when_another_broker_leads(quorum, tmp_path, new_name):
    async with clustered(quorum, tmp_path) as cluster:
        leaving = await cluster.runs()
        await cluster.runs(OTHER_ID, 9093)
        name = new_name()
        await quorum.create_topics([name], assignments=[[BROKER_ID, OTHER_ID]])
        await cluster.observed.until(lambda: name in cluster.image.topics)
        leaving.lifecycle.begin_controlled_shutdown()
        async with asyncio.timeout(TIMEOUT_S):
            await leaving.task
        await cluster.observed.until(lambda: cluster.image.topics[name].partitions[0].leader == OTHER_ID)
        assert cluster.image.topics[name].partitions[0].isr == (OTHER_ID,)
