"""The clock that a test steers under a broker: what passes, in which order, and when it is over."""

import asyncio

import pytest

from odradek.broker.network.dispatch import Dispatcher
from odradek.testing.steered_clock import SteeredClock
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from odradek.timing.driver import AsyncioDriver
from odradek.timing.timer import Timer

DAY_MS = 86_400_000


class Core:
    """What a clock needs of a broker."""

    def __init__(self, clock):
        self.timer = Timer(clock)
        self.timer_driver = AsyncioDriver(self.timer, asyncio.get_running_loop())
        self.background = InlineBackground()
        self.dispatcher = Dispatcher(None, clock, {}, lambda _: None)
        self.connections = None


@pytest.fixture
def machine():
    return VirtualClock(now_ms=1_700_000_000_000, monotonic_ms=5_000)


@pytest.fixture
def clock(machine):
    return SteeredClock(machine)


@pytest.fixture
async def core(clock):
    core = Core(clock)
    clock.serve(core)
    yield core
    core.timer_driver.close()


def test_it_is_the_machines_time_at_first(clock, machine):
    machine.advance(1_500)
    assert (clock.now_ms(), clock.monotonic_ms()) == (machine.now_ms(), machine.monotonic_ms())


def test_a_frozen_clock_stands_still_on_both_faces_and_goes_on_from_there(clock, machine):
    machine.advance(100)
    clock.freeze()
    machine.advance(10_000)
    assert (clock.is_frozen, clock.now_ms(), clock.monotonic_ms(), clock.machine_ms(1)) == (
        True,
        1_700_000_000_100,
        5_100,
        float("inf"),
    )
    clock.resume()
    machine.advance(7)
    assert (clock.is_frozen, clock.monotonic_ms()) == (False, 5_107)


def test_a_faster_clock_goes_on_from_where_it_was(clock, machine):
    machine.advance(1_000)
    clock.speed = 60
    machine.advance(1_000)
    assert (clock.monotonic_ms(), clock.machine_ms(600)) == (66_000, 10)
    clock.speed = 0.5
    machine.advance(1_000)
    assert clock.monotonic_ms() == 66_500


def test_a_speed_that_is_set_while_it_stands_counts_from_when_it_goes_on(clock, machine):
    clock.freeze()
    clock.speed = 10
    machine.advance(1_000)
    assert clock.monotonic_ms() == 5_000
    clock.resume()
    machine.advance(1_000)
    assert clock.monotonic_ms() == 15_000


@pytest.mark.parametrize("speed", [0, -1, float("inf"), float("nan")])
def test_other_speeds_are_refused(clock, speed):
    with pytest.raises(ValueError, match="a speed must be above 0"):
        clock.speed = speed


async def test_time_does_not_go_back(clock):
    with pytest.raises(ValueError, match="time cannot go back"):
        await clock.advance(seconds=-1)


async def test_the_words_of_a_duration_are_those_of_timedelta(clock):
    await clock.advance(weeks=1, days=1, hours=1, minutes=1, seconds=1, milliseconds=1)
    assert clock.monotonic_ms() == 5_000 + 8 * DAY_MS + 3_661_001


async def test_each_deadline_is_met_in_order_at_its_time_with_what_follows_from_it(clock, core):
    seen = []

    def note(name):
        seen.append((name, clock.monotonic_ms() - 5_000))

    core.timer.call_after(DAY_MS, lambda: note("a day"))
    core.timer.call_after(2_000, lambda: note("two seconds"))

    def first():
        note("a second")
        # What a broker does: something in the next turn of the loop, which then waits for a time.
        asyncio.get_running_loop().call_soon(lambda: core.timer.call_after(500, lambda: note("half a second later")))

    core.timer.call_after(1_000, first)
    core.timer.call_after(2 * DAY_MS, pytest.fail)
    await clock.advance(days=1)
    assert seen == [("a second", 1_000), ("half a second later", 1_500), ("two seconds", 2_000), ("a day", DAY_MS)]
    assert clock.monotonic_ms() - 5_000 == DAY_MS


async def test_the_machines_time_does_not_count_while_it_is_moved(clock, core, machine):
    core.timer.call_after(1_000, lambda: machine.advance(60_000))
    await clock.advance(seconds=2)
    assert clock.monotonic_ms() == 7_000
    machine.advance(3)
    assert clock.monotonic_ms() == 7_003


async def test_a_frozen_clock_can_be_moved_and_stays_frozen(clock, core, machine):
    clock.freeze()
    met = []
    core.timer.call_after(1_000, lambda: met.append(clock.monotonic_ms()))
    await clock.advance(seconds=3)
    machine.advance(60_000)
    assert (met, clock.monotonic_ms(), clock.is_frozen) == ([6_000], 8_000, True)


async def test_what_a_speed_brings_forward_is_done_by_the_loop():
    clock = SteeredClock()
    core = Core(clock)
    clock.serve(core)
    done = asyncio.Event()
    core.timer.call_after(DAY_MS, done.set)
    clock.speed = DAY_MS
    await asyncio.wait_for(done.wait(), 20)
    core.timer_driver.close()


async def test_a_deadline_that_ends_the_broker_ends_the_steering(clock, core):
    core.timer.call_after(1_000, lambda: clock.serve(None))
    core.timer.call_after(2_000, pytest.fail)
    await clock.advance(seconds=5)
    assert clock.monotonic_ms() == 10_000


async def test_a_clock_without_a_broker_can_be_moved(clock):
    await clock.advance(hours=1)
    assert clock.monotonic_ms() == 5_000 + 3_600_000
