"""Years of a broker under the virtual clock: ``python -m tests.campaigns.year --years 1 --seed 1``.

Prints each measure over the time, and what grew that must not.
"""

import argparse
import sys

from tests.campaigns.year.life import MEASURES, YEAR_DAYS, live


def main() -> int:
    """1 where something grew, or was not there."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.year", description=__doc__.partition("\n")[0])
    parser.add_argument("--years", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    lived = live(chosen.years * YEAR_DAYS, chosen.seed)
    print(f"{'':<20}{'least':>12}{'most':>12}{'at last':>12}{'restarted':>12}")
    for name in MEASURES:
        values = [measured[name] for measured in lived.measures]
        print(f"{name:<20}{min(values):>12,}{max(values):>12,}{values[-1]:>12,}{lived.restarted[name]:>12,}")
    found = lived.violations()
    print("\n".join([f"{len(lived.measures)} measures in {chosen.years} years; violations {len(found)}", *found]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
