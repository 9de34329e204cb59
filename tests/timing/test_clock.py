"""Both clocks: what each face promises."""

import pytest

from odradek.timing.clock import VirtualClock
from odradek.timing.system_clock import SystemClock
from odradek.timing.timer import Timer


def test_the_system_clocks_monotonic_face_never_goes_back():
    clock = SystemClock()
    readings = [clock.monotonic_ms() for _ in range(1000)]
    assert readings == sorted(readings)


def test_the_system_clocks_wall_face_reads_milliseconds_since_the_epoch():
    assert 1_600_000_000_000 < SystemClock().now_ms() < 10_000_000_000_000


def test_a_virtual_clock_stands_still_until_it_is_advanced():
    clock = VirtualClock(now_ms=5_000, monotonic_ms=70)
    assert (clock.now_ms(), clock.monotonic_ms()) == (5_000, 70)
    clock.advance(30)
    assert (clock.now_ms(), clock.monotonic_ms()) == (5_030, 100)


def test_setting_the_wall_face_leaves_deadlines_alone():
    clock = VirtualClock(now_ms=5_000)
    ran: list[int] = []
    Timer(clock).call_after(100, lambda: ran.append(clock.now_ms()))
    clock.set(1_000_000)
    assert clock.monotonic_ms() == 0
    assert ran == []
    clock.set(1_000)
    clock.advance(100)
    assert ran == [1_100]


def test_a_virtual_clock_does_not_go_back():
    with pytest.raises(ValueError, match="cannot go back"):
        VirtualClock().advance(-1)


def test_callbacks_of_several_timers_run_in_the_order_of_their_deadlines():
    clock = VirtualClock()
    ran: list[tuple[str, float]] = []
    one, other = Timer(clock), Timer(clock)
    for name, timer, deadline_ms in [("c", one, 30), ("a", one, 10), ("b", other, 20), ("d", other, 30), ("late", other, 31)]:
        timer.call_at(deadline_ms, lambda name=name: ran.append((name, clock.monotonic_ms())))
    assert clock.advance(30) == 4
    assert ran == [("a", 10), ("b", 20), ("c", 30), ("d", 30)]


def test_what_a_callback_schedules_runs_in_the_same_advance_at_its_own_deadline():
    clock = VirtualClock()
    timer = Timer(clock)
    ran: list[float] = []

    def tick() -> None:
        ran.append(clock.monotonic_ms())
        timer.call_after(10, tick)

    timer.call_after(10, tick)
    clock.advance(35)
    assert ran == [10, 20, 30]
    assert clock.monotonic_ms() == 35


def test_fractions_of_a_millisecond_are_not_lost_from_the_wall_face():
    clock = VirtualClock(now_ms=1_000)
    timer = Timer(clock)
    for deadline_ms in (0.25, 0.5, 0.75):
        timer.call_at(deadline_ms, lambda: None)
    clock.advance(1)
    assert clock.now_ms() == 1_001


def test_a_callback_that_advances_the_clock_does_not_turn_it_back():
    clock = VirtualClock()
    timer = Timer(clock)
    readings: list[float] = []
    timer.call_at(10, lambda: clock.advance(100))
    timer.call_at(20, lambda: readings.append(clock.monotonic_ms()))
    clock.advance(15)
    assert readings == [20]
    assert clock.monotonic_ms() == 110


def test_a_closed_timer_runs_nothing():
    clock = VirtualClock()
    timer = Timer(clock)
    task = timer.call_after(10, pytest.fail)
    timer.close()
    assert clock.advance(100) == 0
    assert len(timer) == 0
    assert not task.cancel()
