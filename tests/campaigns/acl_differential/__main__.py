"""Runs the campaign: ``python -m tests.campaigns.acl_differential --sets 5000 --core-sets 20000``."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.campaigns.acl_differential.brokers import compare_brokers
from tests.campaigns.acl_differential.core import QUESTIONS, differences, kafkas_answers, story

# Stories that one JVM is asked about.
_BATCH = 2_500


def main() -> int:
    """0 where nothing differed."""
    parser = argparse.ArgumentParser(prog="acl-differential", description=__doc__)
    parser.add_argument("--sets", type=int, default=5_000, help="access control lists for whole brokers")
    parser.add_argument("--core-sets", type=int, default=20_000, help="access control lists for the authorizers alone")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    found = _core(range(chosen.seed, chosen.seed + chosen.core_sets))
    found += _brokers(range(chosen.seed, chosen.seed + chosen.sets))
    print(*found[:20], sep="\n")
    print(f"differences {len(found)}")
    return 1 if found else 0


def _core(seeds: range) -> list[str]:
    began_s = time.monotonic()
    found: list[str] = []
    for start in range(seeds.start, seeds.stop, _BATCH):
        stories = [story(seed) for seed in range(start, min(start + _BATCH, seeds.stop))]
        with tempfile.TemporaryDirectory(prefix="odradek-acls") as scratch:
            found += differences(stories, kafkas_answers(stories, Path(scratch)))
    asked = len(seeds) * QUESTIONS
    print(
        f"authorizers: sets {len(seeds)}, questions {asked}, differences {len(found)}; {time.monotonic() - began_s:.0f} s",
        flush=True,
    )
    return found


def _brokers(seeds: range) -> list[str]:
    if not seeds:
        return []
    began_s = time.monotonic()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="odradek-acls") as scratch:
        found = asyncio.run(compare_brokers(seeds, Path(scratch), counts))
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    print(f"brokers: sets {len(seeds)}, differences {len(found)}; {time.monotonic() - began_s:.0f} s", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
