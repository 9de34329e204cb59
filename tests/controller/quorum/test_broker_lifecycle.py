"""A broker's life in a cluster, under a virtual clock, beside a controller that answers as it is told."""

import asyncio
from contextlib import suppress
from random import Random
from uuid import UUID

import pytest

from odradek.controller.quorum.broker_lifecycle import (
    TRANSITIONS,
    BrokerLifecycle,
    BrokerState,
    IllegalTransition,
    LifecycleConfig,
    Registration,
    RegistrationFailed,
    ensure_transition,
)
from odradek.controller.quorum.controller_channel import ControllerChannel, ControllerUnavailable
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatResponse
from odradek.protocol.message_types.broker_registration import BrokerRegistrationResponse, Listener
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.cases import each_case
from tests.client.net import settle

REGISTRATION = Registration(
    node_id=7,
    cluster_id="4L6g3nShT-eMCtK--X86sw",
    incarnation_id=UUID(int=70),
    listeners=[Listener("PLAINTEXT", "h", 9092, 0)],
    features=[("metadata.version", 7, 30)],
    log_dirs=[UUID(int=300), UUID(int=200)],
    rack="a",
    previous_broker_epoch=3,
)
EPOCH = 11
CONFIG = LifecycleConfig(heartbeat_interval_ms=2_000, session_timeout_ms=9_000, initial_registration_timeout_ms=60_000)


class Controller:
    """Part of ControllerChannel: notes what it is asked, and answers by its attributes."""

    def __init__(self):
        self.asked = []
        self.registration_error = ErrorCode.NONE
        self.heartbeat_error = ErrorCode.NONE
        self.is_caught_up = self.unfences = self.lets_go = False
        self.is_silent = False
        self.hold = None

    async def request(self, api, request, timeout_ms):
        assert 0 < timeout_ms <= CONFIG.session_timeout_ms / 2
        self.asked.append(request)
        if self.hold is not None:
            await self.hold
        if self.is_silent:
            raise ControllerUnavailable("nobody is there")
        if api.key == ApiKey.BROKER_REGISTRATION:
            epoch = -1 if self.registration_error else EPOCH
            return BrokerRegistrationResponse(error_code=self.registration_error, broker_epoch=epoch)
        return BrokerHeartbeatResponse(
            error_code=self.heartbeat_error,
            is_caught_up=self.is_caught_up,
            is_fenced=request.want_fence or not self.unfences,
            should_shut_down=request.want_shut_down and self.lets_go,
        )


class Life:
    def __init__(self):
        self.clock = VirtualClock()
        self.controller = Controller()
        self.offset = 5
        self.told = []
        self.lifecycle = BrokerLifecycle(REGISTRATION, self.controller, lambda: self.offset, Timer(self.clock), Random(1), CONFIG)
        self.lifecycle.on_caught_up = lambda: self.told.append("caught up")
        self.lifecycle.on_unfenced = lambda: self.told.append("unfenced")
        self.task = None

    @property
    def state(self):
        return self.lifecycle.state

    async def begin(self):
        self.task = asyncio.get_running_loop().create_task(self.lifecycle.run())
        await settle()

    async def wait(self, duration_ms, step_ms=10):
        for _ in range(duration_ms // step_ms):
            self.clock.advance(step_ms)
            await settle()

    async def run(self):
        """Until it is RUNNING."""
        self.controller.is_caught_up = self.controller.unfences = True
        await self.begin()
        await self.wait(20)
        self.lifecycle.ready_to_unfence()
        await settle()
        assert self.state == BrokerState.RUNNING
        self.controller.asked.clear()


@pytest.fixture
async def life():
    made = Life()
    yield made
    if made.task is not None:
        made.task.cancel()
        with suppress(asyncio.CancelledError, RegistrationFailed):
            await made.task


async def test_a_broker_registers_with_all_that_it_is(life):
    await life.begin()
    registration = life.controller.asked[0]
    assert (registration.broker_id, registration.cluster_id, registration.incarnation_id, registration.rack) == (
        7,
        REGISTRATION.cluster_id,
        UUID(int=70),
        "a",
    )
    assert registration.log_dirs == [UUID(int=200), UUID(int=300)]
    assert [tuple(feature) for feature in registration.features] == REGISTRATION.features
    assert registration.previous_broker_epoch == 3
    assert life.lifecycle.broker_epoch == EPOCH


async def test_a_broker_is_fenced_until_it_has_caught_up_and_is_ready(life):
    await life.begin()
    assert life.state == BrokerState.STARTING
    life.offset, life.controller.is_caught_up, life.controller.unfences = EPOCH, True, True
    await life.wait(10)
    assert (life.state, life.told) == (BrokerState.RECOVERY, ["caught up"])
    heartbeat = life.controller.asked[-1]
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset, heartbeat.want_fence) == (EPOCH, EPOCH, True)
    await life.wait(4_000)
    assert life.state == BrokerState.RECOVERY
    life.lifecycle.ready_to_unfence()
    await settle()
    assert not life.controller.asked[-1].want_fence
    assert (life.state, life.told) == (BrokerState.RUNNING, ["caught up", "unfenced"])


async def test_a_running_broker_sends_a_heartbeat_every_interval(life):
    await life.run()
    await life.wait(20_000)
    assert len(life.controller.asked) == 10


async def test_a_registration_that_is_refused_is_tried_again_with_pauses_that_grow_to_half_a_second(life):
    life.controller.registration_error = ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await life.begin()
    await life.wait(30_000)
    assert life.state == BrokerState.STARTING
    assert 55 <= len(life.controller.asked) <= 80
    life.controller.registration_error = ErrorCode.NONE
    await life.wait(500)
    assert life.lifecycle.broker_epoch == EPOCH


async def test_a_broker_that_cannot_register_in_time_gives_up(life):
    life.controller.is_silent = True
    await life.begin()
    await life.wait(60_000)
    with pytest.raises(RegistrationFailed, match="nobody is there"):
        await life.task


@pytest.mark.parametrize("initial_ms", [1, 3_000, 60_000])
async def test_a_broker_without_a_controller_gives_up_at_its_deadline(initial_ms):
    clock = VirtualClock()
    timer = Timer(clock)
    channel = ControllerChannel("7", lambda _address: None, timer, Random(1))
    config = LifecycleConfig(session_timeout_ms=9_000, initial_registration_timeout_ms=initial_ms)
    task = asyncio.get_running_loop().create_task(
        BrokerLifecycle(REGISTRATION, channel, lambda: 5, timer, Random(1), config).run()
    )
    await settle()
    while not task.done() and clock.monotonic_ms() < initial_ms:
        clock.advance(min(20, initial_ms))
        await settle()
    with pytest.raises(RegistrationFailed):
        await asyncio.wait_for(task, 0)


async def test_a_registered_broker_never_gives_up(life):
    await life.run()
    life.controller.is_silent = True
    await life.wait(120_000, 100)
    life.controller.is_silent = False
    life.controller.asked.clear()
    await life.wait(9_000, 100)
    assert life.controller.asked
    assert (life.state, life.task.done()) == (BrokerState.RUNNING, False)


async def test_a_heartbeat_that_is_refused_is_sent_again_sooner(life):
    await life.run()
    life.controller.heartbeat_error = ErrorCode.STALE_BROKER_EPOCH
    await life.wait(2_300)
    assert len(life.controller.asked) == 2


async def test_a_controlled_shutdown_lasts_until_the_controller_lets_go(life):
    await life.run()
    life.lifecycle.begin_controlled_shutdown()
    await settle()
    assert life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
    assert life.controller.asked[-1].want_shut_down
    await life.wait(50)
    assert len(life.controller.asked) == 2
    await life.wait(6_000)
    assert not life.task.done()
    life.controller.lets_go = True
    await life.wait(2_000)
    await life.task
    assert life.state == BrokerState.SHUTTING_DOWN


async def test_a_controlled_shutdown_without_a_controller_lasts_until_the_session_is_over(life):
    await life.run()
    life.controller.is_silent = True
    life.lifecycle.begin_controlled_shutdown()
    await life.wait(CONFIG.session_timeout_ms - 1_000)
    assert life.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN
    await life.wait(3_000)
    await life.task
    assert life.state == BrokerState.SHUTTING_DOWN


async def test_a_broker_that_does_not_run_yet_shuts_down_without_leave(life):
    await life.begin()
    life.lifecycle.begin_controlled_shutdown()
    await settle()
    await life.task
    count = len(life.controller.asked)
    await life.wait(5_000)
    assert (life.state, len(life.controller.asked)) == (BrokerState.SHUTTING_DOWN, count)


async def test_a_failed_directory_is_told_at_once(life):
    await life.run()
    directory = UUID(int=200)
    life.lifecycle.directory_failed(directory)
    await settle()
    assert life.controller.asked[-1].offline_log_dirs == [directory]


async def test_news_during_a_request_are_sent_with_the_next_one_at_once(life):
    await life.run()
    hold = life.controller.hold = asyncio.get_running_loop().create_future()
    await life.wait(2_000)
    life.lifecycle.directory_failed(UUID(int=200))
    life.controller.hold = None
    hold.set_result(None)
    await settle()
    assert [each.offline_log_dirs for each in life.controller.asked] == [[], [UUID(int=200)]]


@each_case("old", BrokerState)
@each_case("new", BrokerState)
def test_only_the_transitions_of_the_table_are_permitted(old, new):
    if new in TRANSITIONS[old]:
        ensure_transition(old, new)
    else:
        with pytest.raises(IllegalTransition):
            ensure_transition(old, new)
