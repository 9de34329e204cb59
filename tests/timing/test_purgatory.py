"""Purgatory against a model, and the corners in which operations, keys and deadlines call each other."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from odradek.timing.clock import VirtualClock
from odradek.timing.timer import DelayedOperation, Purgatory, Timer

pytestmark = pytest.mark.interpreted

if TYPE_CHECKING:
    from collections.abc import Callable


class Operation(DelayedOperation):
    """Can complete once `is_ready`; notes what happens to it, and does as told when it does."""

    def __init__(self, deadline_ms: float = 1_000, is_ready: bool = False) -> None:
        super().__init__(deadline_ms)
        self.is_ready = is_ready
        self.tries = 0
        self.events: list[str] = []
        self.while_trying: Callable[[], object] = lambda: None
        self.when_completed: Callable[[], object] = lambda: None

    def try_complete(self) -> bool:
        self.tries += 1
        is_ready = self.is_ready
        self.while_trying()
        return self.force_complete() if is_ready else False

    def on_complete(self) -> None:
        self.events.append("completed")
        self.when_completed()

    def on_expiration(self) -> None:
        self.events.append("expired")


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def timer(clock):
    return Timer(clock)


@pytest.fixture
def purgatory(timer):
    return Purgatory("Test", timer)


def test_operations_are_tried_once_for_several_keys(purgatory):
    one, both = Operation(), Operation()
    purgatory.try_complete_else_watch(one, ["a"])
    purgatory.try_complete_else_watch(both, ["a", "b", "c"])
    purgatory.check_together(["c", "a", "b", "d"])
    assert (one.tries, both.tries) == (2, 2)
    one.is_ready = both.is_ready = True
    one.when_completed = both.force_complete
    purgatory.check_together("abc")
    assert (one.tries, both.tries, purgatory.completed, purgatory.watched) == (3, 2, 2, 0)


keys = st.sampled_from("abc")


class PurgatoryMachine(RuleBasedStateMachine):
    """The model: the waiting operations with their keys, in order of arrival, and the others by what became of them."""

    operations = Bundle("operations")

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.purgatory: Purgatory[Operation] = Purgatory("Test", self.timer)
        self.waiting: dict[Operation, list[str]] = {}
        self.completed: list[Operation] = []
        self.expired: list[Operation] = []
        self.cancelled: list[Operation] = []
        self.completed_after_cancel: list[Operation] = []

    def _leave(self, operation: Operation, outcome: list[Operation]) -> None:
        del self.waiting[operation]
        outcome.append(operation)

    @rule(target=operations, watch_keys=st.lists(keys, min_size=1), timeout_ms=st.integers(-2, 30), is_ready=st.booleans())
    def hand_in(self, watch_keys: list[str], timeout_ms: int, is_ready: bool) -> Operation:
        operation = Operation(self.clock.monotonic_ms() + timeout_ms, is_ready)
        assert self.purgatory.try_complete_else_watch(operation, watch_keys) == is_ready
        self.waiting[operation] = watch_keys
        if is_ready:
            self._leave(operation, self.completed)
        return operation

    @rule(operation=operations)
    def make_ready(self, operation: Operation) -> None:
        operation.is_ready = True

    @rule(key=keys)
    def check(self, key: str) -> None:
        due = [operation for operation, watch_keys in self.waiting.items() if key in watch_keys and operation.is_ready]
        assert self.purgatory.check_and_complete(key) == len(due)
        for operation in due:
            self._leave(operation, self.completed)

    @rule(operation=operations)
    def force(self, operation: Operation) -> None:
        assert operation.force_complete() == (operation in self.waiting or operation in self.cancelled)
        if operation in self.waiting:
            self._leave(operation, self.completed)
        elif operation in self.cancelled:
            self.cancelled.remove(operation)
            self.completed_after_cancel.append(operation)

    @rule(key=keys)
    def cancel(self, key: str) -> None:
        due = [operation for operation, watch_keys in self.waiting.items() if key in watch_keys]
        assert self.purgatory.cancel_for_key(key) == due
        for operation in due:
            self._leave(operation, self.cancelled)

    @rule(duration_ms=st.integers(0, 20))
    def let_time_pass(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        for operation in [waiting for waiting in self.waiting if waiting.deadline_ms <= self.clock.monotonic_ms()]:
            self._leave(operation, self.expired)

    @invariant()
    def every_operation_had_what_the_model_says_once(self) -> None:
        assert all(operation.events == [] for operation in [*self.waiting, *self.cancelled])
        assert all(operation.events == ["completed"] for operation in [*self.completed, *self.completed_after_cancel])
        assert all(operation.events == ["completed", "expired"] for operation in self.expired)

    @invariant()
    def counts_are_exact(self) -> None:
        purgatory = self.purgatory
        assert purgatory.delayed == len(self.timer) == len(self.waiting)
        assert purgatory.watched == sum(len(set(watch_keys)) for watch_keys in self.waiting.values())
        assert purgatory.completed == len(self.completed) + len(self.expired)
        assert purgatory.expired == len(self.expired)

    @invariant()
    def nothing_but_what_waits_is_kept(self) -> None:
        kept = {key: list(watchers) for key, watchers in self.purgatory._watchers.items()}
        for key in "abc":
            assert kept.get(key, []) == [operation for operation, watch_keys in self.waiting.items() if key in watch_keys]
        assert all(kept.values())


PurgatoryMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_purgatory_agrees_with_the_model = PurgatoryMachine.TestCase


def test_an_operation_that_completes_at_once_costs_no_timer_and_no_watching(purgatory, timer):
    operation = Operation(is_ready=True)
    assert purgatory.try_complete_else_watch(operation, ["key"])
    assert (timer._sequence, purgatory.watched, purgatory._watchers) == (0, 0, {})
    assert operation.events == ["completed"]


def test_an_operation_is_not_tried_twice_when_nothing_happened_meanwhile(purgatory):
    operation = Operation()
    purgatory.try_complete_else_watch(operation, ["key"])
    assert operation.tries == 1


def test_a_check_during_the_first_try_is_not_missed(purgatory, timer):
    operation = Operation()

    def become_ready() -> None:
        operation.is_ready = True
        operation.while_trying = lambda: None
        purgatory.check_and_complete("key")

    operation.while_trying = become_ready
    assert purgatory.try_complete_else_watch(operation, ["key"])
    assert operation.events == ["completed"]
    assert (purgatory.watched, len(timer)) == (0, 0)


def test_an_operation_completed_by_others_during_its_first_try_is_not_watched(purgatory, timer):
    operation = Operation()
    operation.while_trying = operation.force_complete
    assert not purgatory.try_complete_else_watch(operation, ["key"])
    assert operation.events == ["completed"]
    assert (purgatory.watched, purgatory.delayed, purgatory.completed, len(timer)) == (0, 0, 1, 0)


def test_an_operation_cancelled_during_its_second_try_gets_no_timer(purgatory, timer):
    operation = Operation()
    operation.while_trying = lambda: purgatory.check_and_complete("other") or purgatory.cancel_for_key("key")
    assert not purgatory.try_complete_else_watch(operation, ["key"])
    assert (purgatory.watched, purgatory.delayed, len(timer)) == (0, 0, 0)


def test_an_operation_needs_a_key_to_wait_under(purgatory):
    with pytest.raises(ValueError, match="at least one key"):
        purgatory.try_complete_else_watch(Operation(), [])


def test_an_operation_that_expires_is_completed_before_it_is_told_that_it_expired(purgatory, clock):
    operation = Operation(deadline_ms=50)
    purgatory.try_complete_else_watch(operation, ["key"])
    clock.advance(49)
    assert operation.events == []
    clock.advance(1)
    assert operation.events == ["completed", "expired"]
    assert operation.tries == 1


def test_completing_checks_its_own_key_again_and_completes_those_that_follow(purgatory):
    first, second, third = (Operation() for _ in range(3))
    for operation in (first, second, third):
        purgatory.try_complete_else_watch(operation, ["key"])
        operation.is_ready = True
    inner: list[int] = []
    first.when_completed = lambda: inner.append(purgatory.check_and_complete("key"))
    assert purgatory.check_and_complete("key") == 1
    assert inner == [2]
    assert [operation.events for operation in (first, second, third)] == [["completed"]] * 3


def test_completing_may_hand_in_an_operation_under_the_same_key(purgatory):
    first, follower = Operation(), Operation()
    purgatory.try_complete_else_watch(first, ["key"])
    first.is_ready = True
    first.when_completed = lambda: purgatory.try_complete_else_watch(follower, ["key"])
    assert purgatory.check_and_complete("key") == 1
    assert follower.tries == 1
    follower.is_ready = True
    assert purgatory.check_and_complete("key") == 1
    assert purgatory.watched == 0


def test_one_cancelled_by_anothers_completion_is_not_tried(purgatory):
    first, second = Operation(), Operation()
    for operation in (first, second):
        purgatory.try_complete_else_watch(operation, ["key"])
        operation.is_ready = True
    first.when_completed = lambda: purgatory.cancel_for_key("key")
    assert purgatory.check_and_complete("key") == 1
    assert (second.tries, second.events) == (1, [])


def test_a_cancelled_operation_may_be_handed_in_again(purgatory, clock):
    operation = Operation(deadline_ms=10)
    purgatory.try_complete_else_watch(operation, ["key", "other"])
    assert purgatory.cancel_for_key("key") == [operation]
    clock.advance(20)
    assert operation.events == []
    operation.deadline_ms = 30
    purgatory.try_complete_else_watch(operation, ["third"])
    clock.advance(20)
    assert operation.events == ["completed", "expired"]


def test_an_operation_that_fails_to_complete_is_never_completed_again(purgatory, clock):
    operation = Operation(deadline_ms=10)

    def fail() -> None:
        raise RuntimeError("a fault of the operation")

    operation.when_completed = fail
    purgatory.try_complete_else_watch(operation, ["key"])
    operation.is_ready = True
    with pytest.raises(RuntimeError):
        purgatory.check_and_complete("key")
    assert purgatory.check_and_complete("key") == 0
    clock.advance(20)
    assert operation.events == ["completed"]
    assert purgatory.watched == 0


def test_checking_a_key_nobody_waits_under_leaves_no_trace(purgatory):
    for key in range(1_000):
        assert purgatory.check_and_complete(key) == 0
    assert purgatory._watchers == {}
