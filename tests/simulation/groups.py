"""Histories of consumer groups, each from its seed: members come, go, stall and crash, and so do the broker, its logs and shards.

    python -m tests.simulation.groups --seeds 20000 [--first 0] [--jobs 2]
    python -m tests.simulation.groups --seed 17 --trace

The requests go through the handlers to the runtime and the shards that a broker has; clock, logs, network and clients are
simulated, and all chance comes from the seed: one seed is one history. What is checked in each stands in ``checks``, ``told``,
``history``, ``commits``, ``replayed`` and ``ending``; what goes wrong in ``plan`` and ``faults``.

Left out: transactions, and other brokers: a shard that moves comes back here, and may have lost what was not committed.
"""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.ending import end
from tests.simulation.faults import Faults
from tests.simulation.violation import Violation
from tests.simulation.world import World

_SEEDS_A_JOB = 50
_MOST_FAILURES = 5
# Between two comparisons with the log.
_PARTS = 3


def run(seed: int, *, show: Callable[[str], None] | None = None) -> tuple[World, Exception | None]:
    """The history of ``seed``, and what it ended with before its time."""
    world = World(seed, show=show)
    try:
        _live(world)
        end(world)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the seed's
        return world, error
    return world, None


def _live(world: World) -> None:
    plan = world.plan
    for group in plan.groups:
        for number in range(group.dynamic_members + group.static_members):
            is_static = number >= group.dynamic_members
            name = f"{'static' if is_static else 'member'}{number}@{group.group_id}"
            consumer = world.make_member(group, name, name if is_static else None)
            arrives_ms = world.rng.choice((0, 0, world.rng.randint(0, plan.duration_ms // 2)))
            world.later(arrives_ms, partial(world.start_member, consumer))
    Faults(world).begin()
    for _ in range(_PARTS):
        world.run(plan.duration_ms // _PARTS)
        world.check_replayed()


def describe(seed: int, world: World, error: Exception) -> str:
    """A failure, for people."""
    broken = str(error) if isinstance(error, Violation) else f"the simulation itself: {error!r}"
    return "\n".join(
        [
            f"seed {seed} failed at {world.clock.monotonic_ms():.0f} ms: {broken}",
            *(f"    {line}" for line in world.last_events()),
            f"    plan: {world.plan}",
            f"again: python -m tests.simulation.groups --seed {seed} --trace",
        ]
    )


def run_many(first: int, count: int) -> tuple[list[str], Counter[str]]:
    """The failures of so many seeds, and what happened in all of them."""
    failures = []
    counts: Counter[str] = Counter()
    # A history is one great cycle, and short: collecting garbage while it lives is for nothing, nor among what was there before.
    gc.freeze()
    gc.disable()
    try:
        for seed in range(first, first + count):
            world, error = run(seed)
            counts.update(world.counts)
            if error is not None:
                failures.append(describe(seed, world, error))
            if seed % 10 == 0:
                gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    return failures, counts


def main(arguments: list[str] | None = None) -> int:
    """1 if a history fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share them")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: show all that happens")
    parser.add_argument("--counts", action="store_true", help="show how often each thing happened")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        world, error = run(options.seed, show=print if options.trace else None)
        print(f"seed {options.seed}: passed" if error is None else describe(options.seed, world, error))
        return int(error is not None)
    started = time.perf_counter()
    failed, counts = _run_all(options.first, options.seeds, options.jobs)
    if options.counts:
        print("\n".join(f"{count:>9} {name}" for name, count in sorted(counts.items())))
    seconds = time.perf_counter() - started
    print(f"{options.seeds} seeds in {seconds:.1f} s, {options.seeds / seconds:.1f} seeds/s, failures {failed}")
    return int(failed > 0)


def _run_all(first: int, seeds: int, jobs: int) -> tuple[int, Counter[str]]:
    starts = range(first, first + seeds, _SEEDS_A_JOB)
    sizes = [min(_SEEDS_A_JOB, first + seeds - start) for start in starts]
    failed = 0
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        outcomes = map(run_many, starts, sizes) if jobs == 1 else pool.map(run_many, starts, sizes)
        for failures, counted in outcomes:
            counts.update(counted)
            for failure in failures[: max(0, _MOST_FAILURES - failed)]:
                print(failure, flush=True)
            failed += len(failures)
    return failed, counts


if __name__ == "__main__":
    sys.exit(main())
