"""``python -m tests.campaigns.faults --sets 1000``: see ``campaign``. The exit status is 1 if anything was violated."""

from __future__ import annotations

import argparse
import sys
from random import SystemRandom

from tests.campaigns.faults.campaign import run


def main() -> int:
    """Run, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1_000, help="of rules")
    parser.add_argument("--seed", type=int, default=SystemRandom().getrandbits(32))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    counts = run(chosen.seed, chosen.sets)
    for violation in counts.violations:
        print(violation)
    print(counts)
    return int(bool(counts.violations))


if __name__ == "__main__":
    sys.exit(main())
