"""Changes of in-sync replicas are taken, or refused, by Apache Kafka's own controller."""

import asyncio
from random import Random

import pytest
import pytest_asyncio

from odradek.broker.replica.controller_requests import AlterPartitions
from odradek.broker.replica.in_sync_replicas import CommittedIsr, Proposal
from odradek.client.node_client import connect_to
from odradek.controller.quorum.controller_channel import ControllerChannel
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.controller.quorum.real_quorum import TIMEOUT_S, RealQuorum

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
LEADER, FOLLOWER = 5, 6


class Changes:
    """The leader's proposals, and what the metadata say of its partition."""

    def __init__(self, observed, channel, epochs, name):
        self.observed, self.epochs, self.name = observed, epochs, name
        self.changes = AlterPartitions(channel, observed.observer._timer, LEADER, lambda: epochs[LEADER])

    @property
    def record(self):
        return self.observed.image.topics[self.name].partitions[0]

    async def propose(self, *node_ids, topic_id=None, leader_epoch=None, partition_epoch=None, epochs=None):
        record = self.record
        proposal = Proposal(
            topic_id or record.topic_id,
            0,
            record.leader_epoch if leader_epoch is None else leader_epoch,
            record.partition_epoch if partition_epoch is None else partition_epoch,
            tuple((node_id, (epochs or self.epochs)[node_id]) for node_id in node_ids),
        )
        done = asyncio.get_running_loop().create_future()
        self.changes.propose(proposal).when_done(done.set_result)
        async with asyncio.timeout(TIMEOUT_S):
            return await done


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def changes(tmp_path_factory):
    controllers = KafkaControllers(tmp_path_factory.mktemp("controllers"), 1, {"broker.session.timeout.ms": "600000"})
    try:
        controllers.start()
        quorum = RealQuorum(controllers)
        epochs = {node_id: await quorum.register(node_id) for node_id in (LEADER, FOLLOWER)}
        await quorum.create_topics(["t"], assignments=[[LEADER, FOLLOWER]])
        channel = ControllerChannel("broker", lambda at: connect_to(*at), quorum.timer, Random(1))
        async with quorum.observing(tmp_path_factory.mktemp("observer")) as observed:
            await observed.until(lambda: "t" in observed.image.topics)
            channel.set_leader(observed.observer.leader)
            yield Changes(observed, channel, epochs, "t")
            channel.close()
        quorum.close()
    finally:
        controllers.close()


async def test_a_follower_is_taken_out_and_let_in_again(changes):
    before = changes.record
    shrunk = await changes.propose(LEADER)
    assert shrunk == CommittedIsr(before.leader_epoch, before.partition_epoch + 1, frozenset((LEADER,)))
    await changes.observed.until(lambda: changes.record.isr == (LEADER,))
    grown = await changes.propose(LEADER, FOLLOWER)
    assert grown == CommittedIsr(before.leader_epoch, before.partition_epoch + 2, frozenset((LEADER, FOLLOWER)))
    await changes.observed.until(lambda: set(changes.record.isr) == {LEADER, FOLLOWER})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"partition_epoch": 0x7000}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"epochs": {LEADER: -1, FOLLOWER: 1}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
async def test_what_the_controller_refuses_is_told(changes, fields, code):
    outcome = await changes.propose(LEADER, FOLLOWER, **fields)
    assert isinstance(outcome, KafkaError)
    assert outcome.code == code
