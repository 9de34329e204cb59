"""AsyncioDriver on real loops, and against a loop that only notes what it is asked."""

import asyncio
from collections.abc import Callable
from math import inf

import pytest

from odradek.timing.clock import VirtualClock
from odradek.timing.driver import AsyncioDriver
from odradek.timing.system_clock import SystemClock
from odradek.timing.timer import Timer


@pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"])
async def test_tasks_run_on_a_real_loop_in_order_and_never_early():
    clock = SystemClock()
    timer = Timer(clock)
    ran: list[tuple[str, float]] = []
    done = asyncio.Event()
    overdue_ms = clock.monotonic_ms() - 1
    timer.call_after(2, lambda: ran.append(("before the driver", clock.monotonic_ms())))
    driver = AsyncioDriver(timer, asyncio.get_running_loop())
    start_ms = clock.monotonic_ms()
    timer.call_after(12.4, lambda: (ran.append(("last", clock.monotonic_ms())), done.set()))
    timer.call_after(7.3, lambda: ran.append(("middle", clock.monotonic_ms())))
    timer.call_after(4, pytest.fail).cancel()
    timer.call_at(overdue_ms, lambda: ran.append(("already due", clock.monotonic_ms())))
    assert ran == []
    await done.wait()
    assert [name for name, _ in ran] == ["already due", "before the driver", "middle", "last"]
    assert ran[2][1] >= start_ms + 7.3
    assert ran[3][1] >= start_ms + 12.4
    driver.close()


class NotedHandle:
    def __init__(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.delay_s = delay_s
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class NotingLoop:
    """Keeps what was scheduled; runs it when told."""

    def __init__(self) -> None:
        self.handles: list[NotedHandle] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> NotedHandle:
        self.handles.append(NotedHandle(delay_s, callback))
        return self.handles[-1]

    def call_soon(self, callback: Callable[[], None]) -> NotedHandle:
        return self.call_later(0, callback)

    @property
    def armed(self) -> list[float]:
        return [handle.delay_s for handle in self.handles if not handle.cancelled]

    def fire(self) -> None:
        handles, self.handles = self.handles, []
        for handle in handles:
            if not handle.cancelled:
                handle.callback()


class HandClock(VirtualClock):
    """A virtual clock that runs no timers by itself, as real time does not. It tells a driver that it has ``speed``."""

    speed = 1

    def attach(self, timer):
        pass

    def machine_ms(self, duration_ms):
        return duration_ms / self.speed if self.speed else inf


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def timer(clock):
    return Timer(clock)


@pytest.fixture
def loop():
    return NotingLoop()


def test_one_loop_timer_is_armed_for_the_earliest_deadline_however_many_wait(timer, loop):
    AsyncioDriver(timer, loop)
    for deadline_ms in (500, 300, 400, 600, 100, 100):
        timer.call_at(deadline_ms, lambda: None)
    assert loop.armed == [0.1]


def test_later_deadlines_cost_the_loop_nothing(timer, loop):
    AsyncioDriver(timer, loop)
    for deadline_ms in range(500, 1_500):
        timer.call_at(deadline_ms, lambda: None).cancel()
    assert len(loop.handles) == 1


def test_after_firing_the_next_deadline_is_armed(clock, timer, loop):
    AsyncioDriver(timer, loop)
    ran: list[int] = []
    timer.call_at(100, lambda: ran.append(100))
    timer.call_at(250, lambda: ran.append(250))
    clock.advance(100)
    loop.fire()
    assert ran == [100]
    assert loop.armed == [0.15]


def test_a_loop_timer_that_fires_too_early_is_armed_again_without_spinning(clock, timer, loop):
    AsyncioDriver(timer, loop)
    timer.call_at(100.5, lambda: None)
    clock.advance(100)
    loop.fire()
    assert loop.armed == [0.001]


def test_what_a_callback_adds_is_armed_once_it_has_run(clock, timer, loop):
    AsyncioDriver(timer, loop)
    timer.call_at(10, lambda: [timer.call_after(delay_ms, lambda: None) for delay_ms in (30, 20, 25)])
    clock.advance(10)
    loop.fire()
    assert loop.armed == [0.02]
    assert len(loop.handles) == 1


def test_a_failing_callback_does_not_stop_the_timer(timer, loop):
    AsyncioDriver(timer, loop)
    ran: list[str] = []

    def fail() -> None:
        raise RuntimeError("a fault of the callback")

    timer.call_at(0, fail)
    timer.call_at(0, lambda: ran.append("after"))
    with pytest.raises(RuntimeError):
        loop.fire()
    loop.fire()
    assert ran == ["after"]
    assert loop.armed == []


def test_a_closed_driver_lets_go_of_the_loop(timer, loop):
    driver = AsyncioDriver(timer, loop)
    timer.call_at(10, pytest.fail)
    driver.close()
    timer.call_at(5, pytest.fail)
    assert loop.armed == []


def test_a_driver_closed_by_a_callback_stays_closed(timer, loop):
    driver = AsyncioDriver(timer, loop)
    timer.call_at(0, driver.close)
    timer.call_at(5, pytest.fail)
    loop.fire()
    assert loop.armed == []


def test_how_late_the_loop_wakes_the_timer_is_summed_beyond_the_rounding(clock, timer, loop):
    driver = AsyncioDriver(timer, loop)
    timer.call_after(2.5, lambda: None)
    clock.advance(3)
    loop.handles[-1].callback()
    assert (driver.wakings, driver.late_ms) == (1, 0)
    timer.call_after(4, lambda: None)
    clock.advance(11)
    loop.handles[-1].callback()
    assert (driver.wakings, driver.late_ms) == (2, 7)


def test_a_clock_that_goes_faster_is_waited_for_as_long_as_the_machine_takes(clock, timer, loop):
    driver = AsyncioDriver(timer, loop)
    timer.call_at(600, lambda: None)
    assert loop.armed == [0.6]
    clock.speed = 60
    driver.rearm()
    assert loop.armed == [0.01]


def test_a_clock_that_stands_still_wakes_nobody_until_it_goes_on(clock, timer, loop):
    driver = AsyncioDriver(timer, loop)
    timer.call_at(500, lambda: None)
    clock.speed = 0
    driver.rearm()
    timer.call_at(400, lambda: None)
    assert loop.armed == []
    clock.speed = 1
    driver.rearm()
    assert loop.armed == [0.4]


def test_a_closed_driver_is_not_armed_again(timer, loop):
    driver = AsyncioDriver(timer, loop)
    timer.call_at(500, lambda: None)
    driver.close()
    driver.rearm()
    assert loop.armed == []
