"""The campaign power-loss: all of it, in so many processes; prints the points tried by kind, and the violations.

python -m tests.campaigns.power_loss                       everything
python -m tests.campaigns.power_loss --only power --seed 7 one part; the seed is that of what is drawn by chance
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import SystemRandom
from time import monotonic

from tests.campaigns.power_loss.parts import PARTS, Job, Tally, jobs, run_job

_WIDTH = 160


def main() -> int:
    """0 if there are no violations."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.power_loss", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=None, help="of what is drawn by chance; one is drawn if it is not given")
    parser.add_argument("--chances", type=int, default=6_000, help="states that are drawn by chance")
    parser.add_argument("--workloads", type=int, default=160, help="workloads whose interleaving with threads is drawn")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part, or several")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    begun = monotonic()
    tally = Tally()
    work: list[Job] = jobs(options.only or PARTS, seed=seed, chances=options.chances, workloads=options.workloads)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for done in pool.map(run_job, work):
            tally.add(done)
    _print(tally, seed, monotonic() - begun)
    return 1 if tally.violations else 0


def _print(tally: Tally, seed: int, seconds: float) -> None:
    for fault in dict.fromkeys(fault for fault, _, _ in tally.points):
        of_fault = {key[1:]: count for key, count in tally.points.items() if key[0] == fault}
        print(f"{fault}: {sum(of_fault.values()):,} points")
        for operation in sorted({operation for operation, _ in of_fault}):
            whats = sorted((what, count) for (of, what), count in of_fault.items() if of == operation)
            print(f"    {operation:<12} {', '.join(f'{what} {count:,}' for what, count in whats)}")
    for name, violation in tally.faults.items():
        print(f"seeded fault: {name}: {violation[:_WIDTH] or 'NOT FOUND'}")
    if tally.faults:
        print(f"seeded faults found {sum(map(bool, tally.faults.values()))} of {len(tally.faults)}")
    print(f"points tried {sum(tally.points.values()):,}, seed {seed}, {seconds:.0f} s")
    for finding in tally.findings:
        print(f"VIOLATION {finding.violation}\n    {finding.where}", file=sys.stderr)
    print(f"violations {tally.violations}")


if __name__ == "__main__":
    sys.exit(main())
