"""Damages every file of a data directory in every way, and starts a broker on each: ``python -m tests.campaigns.damage``.

Prints, for a graceful stop and for a kill, what came of each kind of file and damage. Exit status 1 if anything is silent.
"""

import argparse
import sys
import time
from collections import Counter

from tests.campaigns.damage.explore import BAD, VERDICTS, Judged, explore
from tests.campaigns.damage.life import live

_WIDTH = 40


def main() -> int:
    """Explore, and print."""
    parser = argparse.ArgumentParser(prog="damage", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try every so manieth damage only")
    parser.add_argument("--show", default="", help="also print each damage with this verdict, for example told")
    arguments = parser.parse_args()
    bad: list[Judged] = []
    for is_clean in (True, False):
        began_s = time.monotonic()
        judged = explore(live(is_clean=is_clean), every=arguments.every)
        print(f"\nafter {'a graceful stop' if is_clean else 'a kill'}: {len(judged)} damages, {time.monotonic() - began_s:.0f} s")
        _print_table(judged)
        bad += [each for each in judged if each.verdict in BAD]
        for each in judged:
            if each.verdict == arguments.show:
                print(f"{each.damage} {' and '.join(each.paths[:2])}: {each.why}")
    for each in bad:
        print(f"{each.verdict}: {each.damage} {' and '.join(each.paths[:2])}: {each.why}")
    print(f"\nsilent: {len(bad)}")
    return 1 if bad else 0


def _print_table(judged: list[Judged]) -> None:
    by_kind: dict[tuple[str, str], Counter[str]] = {}
    for each in judged:
        by_kind.setdefault((each.kind, each.damage), Counter())[each.verdict] += 1
    print(f"{'file':{_WIDTH}}{'damage':20}" + "".join(f"{verdict:>11}" for verdict in VERDICTS))
    rows = [*sorted(by_kind.items()), (("all", ""), Counter(each.verdict for each in judged))]
    for (kind, damage), found in rows:
        print(f"{kind:{_WIDTH}}{damage:20}" + "".join(f"{found[verdict] or '-':>11}" for verdict in VERDICTS))


if __name__ == "__main__":
    sys.exit(main())
