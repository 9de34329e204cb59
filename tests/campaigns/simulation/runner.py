"""Runs histories by their seeds, in one process or several, and tells how they ended.

Each simulation is a module to run, ``python -m <module> --seed 17 --trace``, and a function from a seed to the world that its
history led to. All chance comes from the seed: one seed is one history.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections import Counter, deque
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from odradek.protocol.produce_request import ProduceRequest
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SEEDS_A_JOB = 50
_MOST_FAILURES = 5
_LAST_EVENTS = 80


class History(Protocol):
    """What a world tells of itself."""

    clock: VirtualClock
    counts: Counter[str]

    @property
    def plan(self) -> object:
        """What it was to be."""

    def last_events(self) -> list[str]:
        """What happened last."""


class Events:
    """A source of randomness, and a record of events: the last of them, as (virtual ms, format, arguments).

    ``counts`` counts requests, responses and faults. A world sets its ``clock`` before it notes anything.
    """

    clock: Any

    def __init__(self, seed: int, show: Callable[[str], None] | None) -> None:
        self.rng = Random(seed)
        self.counts: Counter[str] = Counter()
        self.events: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=_LAST_EVENTS)
        self._show = show

    def note(self, event: str, *details: object) -> None:
        """Record an event."""
        now_ms = int(self.clock.monotonic_ms())
        self.events.append((now_ms, event, details))
        if self._show is not None:
            self._show(f"{now_ms:>8} {event % details}")

    def last_events(self) -> list[str]:
        """The last events, as lines."""
        return [f"{now_ms:>8} {event % details}" for now_ms, event, details in self.events]


class Chronicle(Events):
    """The base of a simulated world: also a clock, and scheduled steps."""

    def __init__(self, seed: int, show: Callable[[str], None] | None) -> None:
        super().__init__(seed, show)
        self.clock = VirtualClock()
        self._timer = Timer(self.clock)

    def at_tick(self, delay_ms: float, tick_ms: int, step: Callable[[], None]) -> None:
        """Schedule ``step`` in ``delay_ms``, rounded up to a multiple of ``tick_ms``, so that several steps coincide."""
        due_ms = self.clock.monotonic_ms() + delay_ms
        self._timer.call_at(-(-due_ms // tick_ms) * tick_ms, step)

    def next_due_ms(self, broker: Timer | None) -> float:
        """The time of the next step, here or of the broker's timer; infinity for none."""
        deadlines = [timer.next_deadline_ms() for timer in (self._timer, broker) if timer is not None]
        return min((deadline_ms for deadline_ms in deadlines if deadline_ms is not None), default=float("inf"))


_SHOWN = (
    *("error_code", "member_id", "group_instance_id", "generation_id", "generation_id_or_member_epoch", "leader", "assignment"),
    *("producer_id", "producer_epoch", "committed", "group_id", "topics", "transactions", "results_by_transaction", "responses"),
    *("groups", "results", "groups_names", "markers"),
    *("member_epoch", "active_tasks", "standby_tasks", "status"),
)


class Brief:
    """A message for the trace: its informative fields, formatted only if the trace is read."""

    __slots__ = ("_message",)

    def __init__(self, message: Any) -> None:
        self._message = message

    def __str__(self) -> str:
        message = self._message
        if isinstance(message, ProduceRequest):
            return str(
                [(topic, [(index, None if data is None else len(data)) for index, data in of]) for topic, of in message.topics]
            )
        values = ((name, getattr(message, name, None)) for name in _SHOWN)
        return " ".join(f"{name}={value}" for name, value in values if value not in (None, "", ()))


class Run(Protocol):
    """The history of ``seed``, and what it ended with before its time; ``show`` is given all that happens, line by line."""

    def __call__(self, seed: int, *, show: Callable[[str], None] | None = None) -> tuple[History, Exception | None]: ...


@dataclass(frozen=True, slots=True)
class Simulation:
    """``summary`` names what is worth telling of many histories: the counts that are added up, by what is said of them."""

    module: str
    run: Run
    summary: Mapping[str, Sequence[str]]


@dataclass(slots=True)
class Outcome:
    """Of many seeds."""

    seeds: int
    failed: int
    seconds: float
    counts: Counter[str]


def describe(simulation: Simulation, seed: int, world: History, error: Exception) -> str:
    """A failure, for people."""
    broken = str(error) if isinstance(error, Violation) else f"the simulation itself: {error!r}"
    return "\n".join(
        [
            f"seed {seed} failed at {world.clock.monotonic_ms():.0f} ms: {broken}",
            *(f"    {line}" for line in world.last_events()),
            f"    plan: {world.plan}",
            f"again: python -m {simulation.module} --seed {seed} --trace",
        ]
    )


def run_many(simulation: Simulation, first: int, count: int) -> tuple[list[str], Counter[str]]:
    """The failures of so many seeds, and what happened in all of them."""
    failures = []
    counts: Counter[str] = Counter()
    # A history is one great cycle, and short: collecting garbage while it lives is for nothing.
    gc.disable()
    try:
        for seed in range(first, first + count):
            world, error = simulation.run(seed)
            counts.update(world.counts)
            if error is not None:
                failures.append(describe(simulation, seed, world, error))
            if seed % 10 == 0:
                gc.collect()
    finally:
        gc.enable()
    return failures, counts


def run_all(simulation: Simulation, first: int, seeds: int, jobs: int) -> Outcome:
    """``run_many``, shared by ``jobs`` processes. The first failures are printed."""
    started = time.perf_counter()
    starts = range(first, first + seeds, _SEEDS_A_JOB)
    sizes = [min(_SEEDS_A_JOB, first + seeds - start) for start in starts]
    simulations = [simulation] * len(starts)
    outcome = Outcome(seeds, 0, 0.0, Counter())
    # Nor is there garbage in what was there before.
    gc.freeze()
    with ProcessPoolExecutor(jobs, initializer=gc.freeze) as pool:
        outcomes = map(run_many, simulations, starts, sizes) if jobs == 1 else pool.map(run_many, simulations, starts, sizes)
        for failures, counted in outcomes:
            outcome.counts.update(counted)
            for failure in failures[: max(0, _MOST_FAILURES - outcome.failed)]:
                print(failure, flush=True)
            outcome.failed += len(failures)
    outcome.seconds = time.perf_counter() - started
    return outcome


def tell(simulation: Simulation, outcome: Outcome) -> None:
    """Print what there was, and how fast."""
    told = [f"{sum(outcome.counts[name] for name in names):,} {what}" for what, names in simulation.summary.items()]
    print(", ".join(told))
    speed = outcome.seeds / outcome.seconds
    print(f"{outcome.seeds} seeds in {outcome.seconds:.1f} s, {speed:.1f} seeds/s, failures {outcome.failed}", flush=True)


def main(simulation: Simulation, about: str, arguments: list[str] | None = None) -> int:
    """1 if a history fails."""
    parser = parser_of(about)
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: show all that happens")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        world, error = simulation.run(options.seed, show=print if options.trace else None)
        print(f"seed {options.seed}: passed" if error is None else describe(simulation, options.seed, world, error))
        return int(error is not None)
    outcome = run_all(simulation, options.first, options.seeds, options.jobs)
    if options.counts:
        print("\n".join(f"{count:>9} {name}" for name, count in sorted(outcome.counts.items())))
    tell(simulation, outcome)
    return int(outcome.failed > 0)


def parser_of(about: str) -> argparse.ArgumentParser:
    """The arguments of every run of many."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    parser.add_argument("--counts", action="store_true", help="show how often each thing happened")
    return parser
