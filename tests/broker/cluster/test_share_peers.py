"""The state of share partitions that another broker keeps: over the wire as by a call, batched, and repeated when it fails."""

from random import Random
from types import SimpleNamespace

import pytest

from odradek.broker.api import load_handler
from odradek.broker.cluster.broker_clients import BrokerClients, PeerNetwork
from odradek.broker.cluster.share_peers import DeadLetterPeers, ShareStatePeers
from odradek.broker.share.share_persister import SharePersister
from odradek.coordinator.share.state import PartitionState, StateBatch, StateSummary
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.hashing import partition_for
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply
from tests.broker.cluster.images import image_of
from tests.client.net import Net, settle
from tests.coordinator.share.bed import KEY, Bed

HERE, THERE = 1, 2
OTHER = KEY._replace(partition=1)


class Setup:
    """A broker whose share coordinator is ``THERE``; the coordinator there is a shard, reached through its handlers."""

    def __init__(self, leader=THERE):
        self.bed = Bed()
        self.asked = []
        self.answers = True
        self.net = Net(self.answer)
        self.soon = []
        self.alive = {THERE: ("there", 9)}
        network = PeerNetwork(
            lambda _: self.net.connect, self.alive.get, self.soon.append, self.bed.timer, Random(1), HERE, request_timeout_ms=500
        )
        clients = BrokerClients(network, lambda address: network.new_client(address, "shares"))
        peers = ShareStatePeers(clients)
        self.dead_letters = DeadLetterPeers(clients)
        controller = SimpleNamespace(image=image_of({"__share_group_state": [leader] * 3}))
        self.persister = SharePersister(controller, self.ask, self.bed.timer, Random(1), node_id=HERE, others=peers)

    def ask(self, request):
        """A coordinator, here or there. All share partitions are on its only shard."""
        return self.bed.runtime.write(0, request.decide)

    def answer(self, api_key, _version, request):
        self.asked.append((api_key.name, [len(topic.partitions) for topic in request.topics]))
        if not self.answers:
            return None
        response = load_handler(api_key)(SimpleNamespace(shares=self), None, request)
        self.bed.logs.run()
        return response.response if isinstance(response, Reply) else response

    async def run(self, advance_ms=0):
        """Let everything happen that needs no time, then ``advance_ms``."""
        for _ in range(3):
            soon = self.soon.copy()
            self.soon.clear()
            for callback in soon:
                callback()
            self.bed.logs.run()
            await settle()
        if advance_ms:
            self.bed.clock.advance(advance_ms)
            await self.run()

    async def outcome(self, reply):
        await self.run()
        assert reply.done
        return reply.response.code if isinstance(reply.response, KafkaError) else reply.response


async def test_another_brokers_answers_are_those_of_a_call():
    told = []
    batches = (StateBatch(5, 8, 2, 1), StateBatch(9, 9, 0, 1))
    for leader in (HERE, THERE):
        setup = Setup(leader)
        persister, outcome = setup.persister, setup.outcome
        told.append(
            [
                await outcome(persister.read_summary(KEY, 0)),
                await outcome(persister.initialize(KEY, 1, 5)),
                await outcome(persister.read(KEY, 3)),
                await outcome(persister.write(KEY, 1, 3, 5, 4, batches)),
                await outcome(persister.write(KEY, 0, 3, 5, 4, batches)),
                await outcome(persister.read(KEY, 3)),
                await outcome(persister.read(KEY, 2)),
                await outcome(persister.read_summary(KEY, 0)),
                await outcome(persister.delete(KEY)),
                await outcome(persister.read(KEY, 3)),
            ]
        )
        assert bool(setup.asked) == (leader == THERE)
    assert (
        told[0]
        == told[1]
        == [
            StateSummary(0, 0, -1, -1),
            None,
            PartitionState(1, 3, 5, 0, ()),
            None,
            ErrorCode.FENCED_STATE_EPOCH,
            PartitionState(1, 3, 5, 4, batches),
            ErrorCode.FENCED_LEADER_EPOCH,
            StateSummary(1, 3, 5, 4),
            None,
            ErrorCode.INVALID_REQUEST,
        ]
    )


async def test_requests_of_one_turn_go_together():
    setup = Setup()
    replies = [setup.persister.initialize(key, 0, 0) for key in (KEY, OTHER, KEY, KEY._replace(group_id="h"))]
    await setup.run()
    assert [reply.response for reply in replies] == [None] * 4
    name = "INITIALIZE_SHARE_GROUP_STATE"
    assert sorted(setup.asked) == [(name, [1]), (name, [1]), (name, [2])]


async def test_a_request_is_repeated_until_the_coordinator_is_found():
    setup = Setup()
    del setup.alive[THERE]
    reply = setup.persister.initialize(KEY, 0, 0)
    await setup.run(advance_ms=3_000)
    assert not reply.done
    setup.alive[THERE] = ("there", 9)
    await setup.run(advance_ms=5_000)
    assert reply.done
    assert reply.response is None
    # It is not the coordinator any more, and nobody answers.
    setup.bed.runtime.unload(0)
    reply = setup.persister.read(KEY, 0)
    await setup.run(advance_ms=3_000)
    setup.answers = False
    for _ in range(40):
        await setup.run(advance_ms=1_000)
    assert await setup.outcome(reply) in {ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT}


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ([(0, 0)], None),
        ([(0, ErrorCode.NOT_ENOUGH_REPLICAS)], ErrorCode.NOT_ENOUGH_REPLICAS),
        # A later Kafka's.
        ([(0, 999)], ErrorCode.UNKNOWN_SERVER_ERROR),
        ([], ErrorCode.NETWORK_EXCEPTION),
    ],
)
async def test_whatever_the_leader_answers_to_a_dead_letter_it_is_told(partitions, expected):
    setup = Setup()
    produce = messages(ApiKey.PRODUCE)
    answered = [produce.PartitionProduceResponse(index=index, error_code=code, base_offset=0) for index, code in partitions]
    topic = produce.TopicProduceResponse(name="dead", partition_responses=answered)
    setup.net = Net(lambda *_: produce.ProduceResponse(responses=[topic]))
    reply = setup.dead_letters.produce(THERE, "dead", 0, b"a batch")
    assert await setup.outcome(reply) == expected


def test_the_partition_is_that_of_kafkas_key():
    assert KEY.coordinator_key == "g:AAAAAAAAAAAAAAAAAAAABw:0"
    # The hash of Kafka's SharePartitionKey.asCoordinatorKey.
    assert partition_for("grp:AQIDBAUGBwgJCgsMDQ4PEA:2", 50) == 6
