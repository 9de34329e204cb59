"""The parts of the campaign power-loss, cut into jobs that a process does by itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.campaigns.power_loss import workload
from tests.campaigns.power_loss.explore import Exploration, Tally
from tests.campaigns.power_loss.faults import TROUBLES, explore_faults, explore_faults_with_threads
from tests.campaigns.power_loss.flips import explore_flips
from tests.campaigns.power_loss.node import DATA, TWO_DIRECTORIES
from tests.campaigns.power_loss.seeded_faults import FAULTS, explored, find
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTS = ("power", "compact", "chance", "threads", "faults", "flips", "seeded")
_SETTINGS = (1, None)
# An exploration is divided by the numbers of its operations, which all processes count alike.
_SLICES = 8
_MOST_OPERATIONS = 100_000
_EVERY_BYTES = 8
_LARGE_STEPS = 40
_OPERATIONS = 30
_STARTS = 3
_FINDING_SEEDS, _FINDING_OPERATIONS = 40, 6


class Job(NamedTuple):
    """One. ``number`` says which of its part."""

    part: str
    flush_messages: int | None
    number: int
    seed: int
    count: int


def jobs(parts: Iterable[str], *, seed: int, chances: int, workloads: int) -> list[Job]:
    """All of these parts: ``chances`` states drawn by chance, ``workloads`` with threads."""
    counts = {"chance": chances, "threads": workloads, "faults": workloads}
    found = []
    for part in parts:
        for flush_messages in _SETTINGS:
            count = counts.get(part, 0) // (len(_SETTINGS) * _SLICES)
            found += [Job(part, flush_messages, number, seed, count) for number in range(_SLICES)]
    return found


def run_job(job: Job) -> Tally:
    """Do it, in a loop of its own."""
    loop = asyncio.new_event_loop()
    try:
        return _WORK[job.part](loop, job)
    finally:
        loop.close()


def _power(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    return _slice(Exploration(loop, workload.SMALL, flush_messages=job.flush_messages, every_bytes=_EVERY_BYTES), job)


def _compact(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    exploration = Exploration(
        loop, workload.COMPACTING, flush_messages=job.flush_messages, every_bytes=_EVERY_BYTES, directories=TWO_DIRECTORIES
    )
    return _slice(exploration, job)


def _slice(exploration: Exploration, job: Job) -> Tally:
    """The job's share of all there is."""
    length = -(-len(exploration.operations) // _SLICES)
    return exploration.explore(range(job.number * length, (job.number + 1) * length))


def _chance(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    rng = Random(f"{job.seed}-{job.flush_messages}-{job.number}")
    steps = workload.draw_large(rng, _LARGE_STEPS)
    name = f"seed {job.seed}, log.flush.interval.messages={job.flush_messages}, part {job.number}"
    directories = TWO_DIRECTORIES if job.number % 2 else (DATA,)
    exploration = Exploration(loop, steps, flush_messages=job.flush_messages, name=name, directories=directories)
    return exploration.explore_by_chance(rng, job.count)


def _threads(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    tally = Tally()
    for number in range(job.count):
        seed = f"{job.seed}-{job.number}-{number}"
        exploration = explored(loop, seed, job.flush_messages)
        exploration.explore_around(Random(f"{seed}-points"), _OPERATIONS)
        found = exploration.explore_starts(Random(f"{seed}-starts"), _STARTS)
        found.points = Counter({(f"{kind}, with threads", *rest): count for (kind, *rest), count in found.points.items()})
        tally.add(found)
    return tally


def _seeded(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    """Faults that have to be found."""
    tally = Tally()
    for number, fault in enumerate(FAULTS):
        if fault.flush_messages != job.flush_messages or number % _SLICES != job.number:
            continue
        drawn = (f"{job.seed}-{number}" for number in range(_FINDING_SEEDS))
        found = find(loop, fault, [fault.seed, *drawn], _FINDING_OPERATIONS)
        tally.faults[fault.name] = "" if found is None else str(found.violation)
        if found is None:
            tally.found("seeded faults", Violation("each seeded fault is found", fault.name))
    return tally


def _faults(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    tally = explore_faults(loop, job.flush_messages, TROUBLES, range(job.number, _MOST_OPERATIONS, _SLICES))
    seeds = (f"{job.seed}-{job.number}-{number}" for number in range(job.count))
    tally.add(explore_faults_with_threads(loop, job.flush_messages, seeds))
    return tally


def _flips(loop: asyncio.AbstractEventLoop, job: Job) -> Tally:
    # Both settings share the bytes.
    number = job.number * 2 + (job.flush_messages is None)
    return explore_flips(loop, range(number, _MOST_OPERATIONS, 2 * _SLICES))


_WORK = {
    "power": _power,
    "compact": _compact,
    "chance": _chance,
    "threads": _threads,
    "faults": _faults,
    "flips": _flips,
    "seeded": _seeded,
}
