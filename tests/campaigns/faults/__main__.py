"""``python -m tests.campaigns.faults --sets 1000``: see ``campaign``. The exit status is 1 if anything was violated."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from random import Random, SystemRandom

from tests.campaigns.faults.campaign import Counts, run

_SETS_A_LOT = 50
# Lots told of together.
_TOLD = 4


def main() -> int:
    """Run, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1_000, help="of rules")
    parser.add_argument("--seed", type=int, default=SystemRandom().getrandbits(32))
    parser.add_argument("--jobs", type=int, default=6, help="lots at a time")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    random, counts = Random(chosen.seed), Counts()
    sizes = [min(_SETS_A_LOT, chosen.sets - begun) for begun in range(0, chosen.sets, _SETS_A_LOT)]
    seeds = [random.getrandbits(32) for _ in sizes]
    # The clients of a lot wait for most of the time.
    with ProcessPoolExecutor(chosen.jobs, multiprocessing.get_context("spawn")) as pool:
        for number, (seed, found) in enumerate(zip(seeds, pool.map(run, seeds, sizes), strict=True), 1):
            counts.add(found)
            for violation in found.violations:
                print(f"lot {seed}: {violation}", flush=True)
            if number % _TOLD == 0 or number == len(sizes):
                print(counts, flush=True)
    return int(bool(counts.violations))


if __name__ == "__main__":
    sys.exit(main())
