"""Faults of the product that a simulation has to find: each is planted alone, and a history that finds it is searched for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.campaigns.simulation.runner import Run, Simulation


class Mutation(NamedTuple):
    """``first`` is the seed with which the search begins, not far before one that finds it."""

    plant: Callable[[pytest.MonkeyPatch], None]
    invariants: frozenset[str]
    first: int = 0


def search(mutation: Mutation, run: Run, most: int) -> tuple[int | None, Exception | None]:
    """The first seed, of so many, that finds what is planted, and what it finds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        mutation.plant(monkeypatch)
        for seed in range(mutation.first, mutation.first + most):
            error = run(seed)[1]
            if error is not None:
                return seed, error
    return None, None


def search_all(mutations: Mapping[str, Mutation], run: Run, most: int) -> int:
    """Search for all, and print what is found; how many are not."""
    missed = 0
    for name, mutation in mutations.items():
        seed, error = search(mutation, run, most)
        is_found = isinstance(error, Violation) and error.invariant in mutation.invariants
        missed += not is_found
        told = f"found by seed {seed}: {error}" if is_found else f"MISSED: {error!r}"
        print(f"{name.replace('_', ' ')}: {told[:160]}", flush=True)
    print(f"{len(mutations)} faults planted, {missed} missed")
    return missed


def main(simulation: Simulation, mutations: Mapping[str, Mutation], about: str, arguments: list[str] | None = None) -> int:
    """``runner.main``, with the option to plant ``mutations``. 1 if a history fails, or a fault is not found."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--mutations", type=int, default=0, help="plant each fault, and search so many histories for it")
    chosen, others = parser.parse_known_args(arguments)
    whole = f"{about.partition(chr(10))[0]} --mutations N plants each fault, and searches N histories for it."
    failed = runner.main(simulation, whole, others)
    missed = search_all(mutations, simulation.run, chosen.mutations) if chosen.mutations else 0
    return int(failed or missed > 0)
