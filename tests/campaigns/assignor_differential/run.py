"""The long form of a comparison of assignors: batches of drawn histories, and the planted faults that they find."""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from tests.campaigns.planted import Faults

# Histories that one JVM is asked about.
_BATCH = 500

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Comparison(NamedTuple, Generic[Question, Answer]):
    """One comparison. ``steps`` are the inputs of a history; ``kind`` names what a question is counted as."""

    name: str
    about: str
    steps: int
    compare: Callable[[Iterable[int], Path], tuple[list[Question], list[Answer]]]
    differences: Callable[[list[Question], list[Answer]], list[str]]
    kind: Callable[[Question], str]
    # Empty if the assignor is compiled: no faults can be planted.
    faults: Faults


def run(comparison: Comparison[Question, Answer]) -> int:
    """Run it with the arguments of the command line. 0 if nothing differed and all faults were found."""
    parser = argparse.ArgumentParser(prog=comparison.name, description=comparison.about)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began_s = time.monotonic()
    counts: Counter[str] = Counter()
    found: list[str] = []
    unfound = set(comparison.faults)
    histories = -(-chosen.inputs // comparison.steps)
    end = chosen.seed + histories
    for first in range(chosen.seed, end, _BATCH):
        seeds = range(first, min(first + _BATCH, end))
        with tempfile.TemporaryDirectory(prefix="odradek-assignors") as scratch:
            questions, answers = comparison.compare(seeds, Path(scratch))
        counts.update(map(comparison.kind, questions))
        differing = comparison.differences(questions, answers)
        print(f"seeds {seeds[0]} to {seeds[-1]}: {len(questions)} questions, differences {len(differing)}", flush=True)
        found += differing
        for fault in sorted(unfound):
            with comparison.faults.planted(fault):
                if comparison.differences(questions, answers):
                    unfound.remove(fault)
    print(*found[:3], sep="\n")
    for kind, count in sorted(counts.items()):
        print(f"{kind}: {count}")
    print(
        f"inputs {histories * comparison.steps}, questions {counts.total()}, differences {len(found)}; "
        f"faults put in {len(comparison.faults)}, not found {sorted(unfound) or 0}; {time.monotonic() - began_s:.0f} s"
    )
    return 1 if found or unfound else 0
