"""Work beside the loop: each implementation keeps the port's promises, and a seed decides the seeded one's interleaving."""

import asyncio
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from random import Random

import pytest

from odradek.timing.background import InlineBackground, WorkAbandoned
from odradek.timing.seeded_background import SeededBackground
from odradek.timing.threaded_background import ThreadedBackground

LABEL = ContextVar("label", default="")
TIMEOUT_S = 10


def seeded(seed=1):
    return SeededBackground(Random(seed))


EVERY = pytest.mark.parametrize("make", [InlineBackground, ThreadedBackground, seeded])


def threads():
    return [thread.name for thread in threading.enumerate()]


@EVERY
async def test_the_outcome_comes_back_to_the_loop_thread(make):
    background, told = make(), []
    background.run(lambda: 7, lambda outcome: told.append((outcome.result(), threading.current_thread())))
    await background.finish()
    assert told == [(7, threading.main_thread())]


@EVERY
async def test_a_failure_is_raised_where_the_outcome_is_asked_for(make):
    background, told = make(), []
    background.run(lambda: 1 // 0, lambda outcome: told.append(outcome.exception()))
    background.run_long(lambda beside: 1 // 0, lambda outcome: told.append(outcome.exception()), name="long")
    await background.finish()
    assert [type(error) for error in told] == [ZeroDivisionError, ZeroDivisionError]


@EVERY
async def test_work_that_an_outcome_leads_to_is_waited_for(make):
    background, told = make(), []
    background.run(lambda: 1, lambda _: background.run(lambda: 2, lambda outcome: told.append(outcome.result())))
    await background.finish()
    assert told == [2]


@EVERY
async def test_long_work_has_the_loop_do_things_and_is_told_what_came_of_them(make):
    background, told = make(), []

    def work(beside):
        found = beside.on_loop(threading.current_thread)
        beside.checkpoint()
        beside.rest(1)
        with pytest.raises(KeyError):
            beside.on_loop(lambda: {}["missing"])
        return found

    background.run_long(work, lambda outcome: told.append(outcome.result()), name="long")
    await background.finish()
    assert told == [threading.main_thread()]


@pytest.mark.parametrize("make", [ThreadedBackground, seeded])
async def test_long_work_that_is_cancelled_sees_it_and_need_not_rest_to_the_end(make):
    background, told = make(), []

    def work(beside):
        while not beside.is_cancelled:
            beside.rest(60_000)
        return "ended"

    background.run_long(work, lambda outcome: told.append(outcome.result()), name="long").cancel()
    await asyncio.wait_for(background.finish(), TIMEOUT_S)
    assert told == ["ended"]


@EVERY
async def test_for_each_has_done_all_when_it_returns(make):
    done = []
    make().for_each(done.append, range(50), name="each")
    assert sorted(done) == list(range(50))


@EVERY
async def test_no_thread_is_left_by_finish(make):
    before = threads()
    background = make()
    for _ in range(20):
        background.run(lambda: None, lambda _: None)
        background.run_long(lambda beside: beside.on_loop(lambda: None), lambda _: None, name="long")
    await background.finish()
    assert threads() == before


@pytest.mark.parametrize("make", [ThreadedBackground, seeded])
async def test_what_was_abandoned_tells_nothing_and_its_threads_end(make):
    before = threads()
    background, told = make(), []
    has_ended = threading.Event()

    def work(beside):
        try:
            while True:
                beside.on_loop(lambda: None)
        except WorkAbandoned:
            has_ended.set()
            raise

    background.run_long(work, told.append, name="long")
    background.run(lambda: None, told.append)
    for _ in range(20):
        await asyncio.sleep(0)
    told.clear()
    background.abandon()
    background.run(lambda: None, told.append)
    async with asyncio.timeout(TIMEOUT_S):
        while threads() != before:  # noqa: ASYNC110  nobody tells when a thread has ended
            await asyncio.sleep(0.001)
    assert has_ended.is_set()
    assert told == []


@pytest.mark.parametrize("make", [ThreadedBackground, seeded])
async def test_work_runs_in_the_context_of_who_asked_for_it(make):
    background, seen = make(), []
    LABEL.set("asker")
    background.run_long(lambda _: seen.append(LABEL.get()), lambda _: seen.append(LABEL.get()), name="long")
    LABEL.set("other")
    await background.finish()
    assert seen[0] == "asker"


async def test_works_of_one_name_do_not_hold_up_those_of_another():
    background, may_end = ThreadedBackground(), threading.Event()
    over = asyncio.Event()
    for _ in range(100):
        background.run(may_end.wait, lambda _: None, name="slow")
    background.run(lambda: None, lambda _: over.set(), name="quick")
    await asyncio.wait_for(over.wait(), TIMEOUT_S)
    may_end.set()
    await background.finish()


async def test_long_work_runs_within_what_the_process_wants_meanwhile():
    seen = []

    @contextmanager
    def meanwhile():
        seen.append("begun")
        yield
        seen.append("over")

    background = ThreadedBackground(meanwhile)
    background.run_long(lambda _: seen.append("work"), lambda _: None, name="long")
    await background.finish()
    assert seen == ["begun", "work", "over"]


async def history(seed):
    """What happens when three works and a long one meet a loop that does something every turn."""
    background, seen = seeded(seed), []

    def long(beside):
        for number in range(5):
            seen.append(f"long {number}")
            beside.on_loop(lambda: seen.append("on loop"))
            beside.checkpoint()

    background.run_long(long, lambda _: seen.append("long over"), name="long")
    for name in "abc":
        background.run(lambda name=name: seen.append(name), lambda _, name=name: seen.append(f"{name} over"))
    while "long over" not in seen or background._works:
        seen.append("turn")
        await asyncio.sleep(0)
    return seen


async def test_the_same_seed_gives_the_same_interleaving_and_another_one_another():
    histories = [await history(seed) for seed in range(10)]
    assert [await history(seed) for seed in range(10)] == histories
    orders = {tuple(each for each in history if each != "turn") for history in histories}
    assert len(orders) > 5


async def test_the_loop_has_turns_between_the_steps_of_a_work():
    seen = await history(3)
    steps = [index for index, each in enumerate(seen) if each.startswith("long")]
    assert any("turn" in seen[first:second] for first, second in pairwise(steps))


async def test_a_fine_background_lets_works_and_the_loop_take_turns_within_an_operation():
    orders = set()
    for seed in range(20):
        background, seen = SeededBackground(Random(seed), is_fine=True), []

        def operation(name, background=background, seen=seen):
            seen.append(f"{name} begins")
            background.pause()
            seen.append(f"{name} ends")

        for name in "ab":
            background.run(lambda name=name, operation=operation: operation(name), lambda outcome: outcome.result())
        operation("loop")
        await background.finish()
        assert sorted(seen) == sorted(f"{name} {what}" for name in ("a", "b", "loop") for what in ("begins", "ends"))
        orders.add(tuple(seen))
    assert any(order[1:-1] for order in orders if order[0] == "loop begins" and order[-1] == "loop ends")
    assert len(orders) > 5


async def test_work_that_waits_for_the_loop_does_not_go_on_while_the_loop_pauses():
    background, seen = SeededBackground(Random(3), is_fine=True, step_chance=0.9), []

    def on_loop():
        background.pause()
        seen.append("on loop")

    background.run_long(lambda beside: (beside.on_loop(on_loop), seen.append("after it")), lambda _: None, name="long")
    await background.finish()
    assert seen == ["on loop", "after it"]


async def test_short_work_that_is_abandoned_within_an_operation_ends_there():
    background, seen = SeededBackground(Random(1), is_fine=True, step_chance=0.1), []

    def work():
        try:
            seen.append("begins")
            background.pause()
            seen.append("ends")
        finally:
            background.pause()

    background.run(work, lambda _: seen.append("told"))
    while not seen:
        background.pause()
    background.abandon()
    assert seen == ["begins"]
