"""Requests reach the active controller, whichever node that is by then."""

import asyncio
from random import Random

import pytest

from odradek.client.api import Api
from odradek.controller.quorum.controller_channel import ChannelConfig, ControllerChannel, ControllerUnavailable
from odradek.controller.quorum.leader_discovery import Leader
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.client.net import Net, settle

ALLOCATE = Api(ApiKey.ALLOCATE_PRODUCER_IDS)
REQUEST = AllocateProducerIdsRequest(broker_id=7, broker_epoch=1)


class Node:
    """A controller, which says that it is not the active one until it is."""

    def __init__(self, start):
        self.start = start
        self.is_active = False
        self.asked = 0
        self.net = Net(self.answer)

    def answer(self, _api_key, _version, _request):
        self.asked += 1
        if self.is_active:
            return AllocateProducerIdsResponse(producer_id_start=self.start, producer_id_len=1000)
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)


class Setup:
    def __init__(self):
        self.clock = VirtualClock()
        self.nodes = {1: Node(1000), 2: Node(2000)}
        self.channel = ControllerChannel(
            "c",
            lambda address: self.nodes[address[1]].net.connect,
            Timer(self.clock),
            Random(1),
            ChannelConfig(request_timeout_ms=1_000, retry_backoff_ms=100),
        )

    def lead(self, node_id):
        self.channel.set_leader(None if node_id is None else Leader(node_id, "h", node_id, 1))

    def ask(self, timeout_ms=10_000):
        return asyncio.get_running_loop().create_task(self.channel.request(ALLOCATE, REQUEST, timeout_ms))

    async def wait(self, duration_ms, step_ms=10):
        await settle()
        for _ in range(duration_ms // step_ms):
            self.clock.advance(step_ms)
            await settle()


@pytest.fixture
async def setup():
    made = Setup()
    yield made
    made.channel.close()


async def test_a_request_waits_until_there_is_a_leader(setup):
    setup.nodes[1].is_active = True
    asked = setup.ask()
    await setup.wait(500)
    assert not asked.done()
    setup.lead(1)
    await settle()
    assert (await asked).producer_id_start == 1000


async def test_a_node_that_is_not_the_controller_is_asked_again_after_the_backoff(setup):
    setup.lead(1)
    asked = setup.ask()
    await settle()
    assert setup.nodes[1].asked == 1
    await setup.wait(90)
    assert setup.nodes[1].asked == 1
    setup.nodes[1].is_active = True
    await setup.wait(20)
    assert (await asked).producer_id_start == 1000
    assert setup.nodes[1].asked == 2


async def test_another_leader_is_asked_at_once(setup):
    setup.lead(1)
    asked = setup.ask()
    await settle()
    setup.nodes[2].is_active = True
    setup.lead(2)
    await settle()
    assert (await asked).producer_id_start == 2000


async def test_a_request_in_flight_to_a_leader_that_is_no_more_goes_to_the_next(setup):
    setup.nodes[1].net.is_mute = True
    setup.nodes[2].is_active = True
    setup.lead(1)
    asked = setup.ask()
    await setup.wait(200)
    setup.lead(2)
    await settle()
    assert (await asked).producer_id_start == 2000


async def test_an_attempt_that_hangs_is_given_up_for_another(setup):
    setup.nodes[1].net.is_mute = True
    setup.nodes[1].is_active = True
    setup.lead(1)
    asked = setup.ask()
    await setup.wait(900)
    setup.nodes[1].net.is_mute = False
    await setup.wait(1_000)
    assert (await asked).producer_id_start == 1000


@pytest.mark.parametrize("leader", [None, 1])
async def test_a_request_that_no_controller_answers_in_time_fails(setup, leader):
    setup.lead(leader)
    asked = setup.ask(timeout_ms=1_000)
    await setup.wait(990)
    assert not asked.done()
    await setup.wait(20)
    with pytest.raises(ControllerUnavailable, match="ALLOCATE_PRODUCER_IDS"):
        await asked
