"""Runs the campaign: ``python -m tests.campaigns.assignor_differential --inputs 20000``."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from odradek.coordinator.group.assignor import builtin
from tests.campaigns.assignor_differential.comparison import compare, differences
from tests.campaigns.assignor_differential.faults import FAULTS
from tests.campaigns.assignor_differential.history import STEPS

# Histories that one JVM is asked about.
_BATCH = 500


def main() -> int:
    """0 where nothing differed and all faults were found."""
    parser = argparse.ArgumentParser(prog="assignor-differential", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began_s = time.monotonic()
    counts: Counter[str] = Counter()
    found: list[str] = []
    unfound = set(FAULTS) if builtin.__file__.endswith(".py") else set()
    faults = len(unfound)
    histories = -(-chosen.inputs // STEPS)
    end = chosen.seed + histories
    for first in range(chosen.seed, end, _BATCH):
        seeds = range(first, min(first + _BATCH, end))
        with tempfile.TemporaryDirectory(prefix="odradek-assignors") as scratch:
            compared = compare(seeds, Path(scratch))
        for question in compared[0]:
            kind = "alike" if question.group.is_homogeneous else "unlike"
            counts[f"{question.assignor}, members {kind}, {'hashed' if question.is_hashed else 'sorted'}"] += 1
        differing = differences(*compared)
        print(f"seeds {seeds[0]} to {seeds[-1]}: {len(compared[0])} questions, differences {len(differing)}", flush=True)
        found += differing
        for fault in sorted(unfound):
            with FAULTS.planted(fault):
                if differences(*compared):
                    unfound.remove(fault)
    print(*found[:3], sep="\n")
    for kind, count in sorted(counts.items()):
        print(f"{kind}: {count}")
    print(
        f"inputs {histories * STEPS}, questions {counts.total()}, differences {len(found)}; faults put in {faults}, "
        f"not found {sorted(unfound) or 0}; {time.monotonic() - began_s:.0f} s"
    )
    return 1 if found or unfound else 0


if __name__ == "__main__":
    sys.exit(main())
