"""Timer against a model that keeps a plain list, and the limits it promises."""

from heapq import nsmallest

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from odradek.timing.clock import VirtualClock
from odradek.timing.timer import COMPACTION_FLOOR, Timer, TimerTask

delays_ms = st.integers(min_value=-5, max_value=40)


class TimerMachine(RuleBasedStateMachine):
    """Whatever is added and cancelled, tasks run once, in the order of (deadline, arrival), at their deadline."""

    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.pending: dict[int, float] = {}
        self.ran: list[tuple[int, float]] = []
        self.arrivals = 0

    def _arrive(self, deadline_ms: float) -> int:
        number = self.arrivals
        self.arrivals += 1
        self.pending[number] = deadline_ms
        return number

    @rule(target=tasks, delay_ms=delays_ms)
    def call_at(self, delay_ms: int) -> tuple[int, TimerTask]:
        deadline_ms = self.clock.monotonic_ms() + delay_ms
        number = self._arrive(deadline_ms)
        return number, self.timer.call_at(deadline_ms, lambda: self.ran.append((number, self.clock.monotonic_ms())))

    @rule(target=tasks, delay_ms=delays_ms)
    def call_after(self, delay_ms: int) -> tuple[int, TimerTask]:
        number = self._arrive(self.clock.monotonic_ms() + delay_ms)
        return number, self.timer.call_after(delay_ms, lambda: self.ran.append((number, self.clock.monotonic_ms())))

    @rule(task=consumes(tasks))
    def cancel(self, task: tuple[int, TimerTask]) -> None:
        number, timer_task = task
        assert timer_task.is_pending == (number in self.pending)
        assert timer_task.cancel() == (number in self.pending)
        assert not timer_task.cancel()
        self.pending.pop(number, None)

    @rule(count=st.integers(min_value=1, max_value=3 * COMPACTION_FLOOR))
    def add_and_cancel_many(self, count: int) -> None:
        for task in [self.timer.call_after(delay_ms % 50, pytest.fail) for delay_ms in range(count)]:
            assert task.cancel()

    @rule(duration_ms=st.integers(min_value=0, max_value=50))
    def advance(self, duration_ms: int) -> None:
        start_ms = self.clock.monotonic_ms()
        end_ms = start_ms + duration_ms
        due = sorted((deadline_ms, number) for number, deadline_ms in self.pending.items() if deadline_ms <= end_ms)
        self.ran.clear()
        assert self.clock.advance(duration_ms) == len(due)
        assert self.ran == [(number, max(deadline_ms, start_ms)) for deadline_ms, number in due]
        for _, number in due:
            del self.pending[number]

    @invariant()
    def counts_and_next_deadline_agree(self) -> None:
        assert len(self.timer) == len(self.pending)
        assert [self.timer.next_deadline_ms()] == (nsmallest(1, self.pending.values()) or [None])

    @invariant()
    def garbage_is_bounded(self) -> None:
        assert len(self.timer._heap) <= 2 * len(self.timer) + COMPACTION_FLOOR


TimerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_timer_agrees_with_the_model = TimerMachine.TestCase


def test_100_000_pending_tasks_run_in_order_and_those_cancelled_do_not():
    clock = VirtualClock()
    timer = Timer(clock)
    ran: list[int] = []
    tasks = [timer.call_at(number * 7919 % 100_003, lambda number=number: ran.append(number)) for number in range(100_000)]
    for task in tasks[::2]:
        task.cancel()
    assert len(timer) == 50_000
    assert timer.advance() == 0
    clock.advance(100_003)
    assert ran == sorted(range(1, 100_000, 2), key=lambda number: number * 7919 % 100_003)


def test_waiting_and_being_cancelled_over_and_over_leaves_no_garbage():
    timer = Timer(VirtualClock())
    kept = timer.call_at(1, lambda: None)
    for deadline_ms in range(2, 200_000):
        timer.call_at(deadline_ms, lambda: None).cancel()
    assert kept.is_pending
    assert len(timer._heap) <= 2 + COMPACTION_FLOOR


def test_a_callback_may_cancel_another_that_is_due_at_the_same_moment():
    clock = VirtualClock()
    timer = Timer(clock)
    cancelled: list[bool] = []
    timer.call_at(10, lambda: cancelled.append(victim.cancel()))
    victim = timer.call_at(10, pytest.fail)
    assert clock.advance(10) == 1
    assert cancelled == [True]


def test_a_task_cannot_be_cancelled_from_its_own_callback():
    clock = VirtualClock()
    timer = Timer(clock)
    outcomes: list[bool] = []
    task = timer.call_at(10, lambda: outcomes.append(task.cancel()))
    clock.advance(10)
    assert outcomes == [False]
    assert len(timer) == 0


def test_an_exception_reaches_the_caller_and_leaves_the_other_tasks_due():
    clock = VirtualClock()
    timer = Timer(clock)
    ran: list[str] = []

    def fail() -> None:
        raise RuntimeError("a fault of the callback")

    timer.call_at(0, fail)
    timer.call_at(0, lambda: ran.append("after"))
    with pytest.raises(RuntimeError):
        timer.advance()
    assert len(timer) == 1
    timer.advance()
    assert ran == ["after"]


def test_only_a_deadline_before_all_others_is_announced():
    timer = Timer(VirtualClock())
    announced: list[float] = []
    timer.on_earlier_deadline = announced.append
    for deadline_ms in (50, 60, 40, 40, 45, 10):
        timer.call_at(deadline_ms, lambda: None)
    assert announced == [50, 40, 10]


def test_a_callback_that_compacts_the_heap_loses_nothing():
    clock = VirtualClock()
    timer = Timer(clock)
    ran: list[int] = []
    doomed = [timer.call_at(1_000, pytest.fail) for _ in range(4 * COMPACTION_FLOOR)]
    timer.call_at(1, lambda: [task.cancel() for task in doomed])
    for number in range(5):
        timer.call_at(1 + number, lambda number=number: ran.append(number))
    clock.advance(2_000)
    assert ran == [0, 1, 2, 3, 4]
    assert len(timer) == 0
