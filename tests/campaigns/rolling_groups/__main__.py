"""Runs the campaign: ``python -m tests.campaigns.rolling_groups``."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.campaigns.rolling_groups.faults import NO_FAULT, SEEDED
from tests.campaigns.rolling_groups.members import COOPERATIVE, classic
from tests.campaigns.rolling_groups.rolling import SETTINGS, Rolling, there_and_back

# A report has the first of them.
_SHOWN = 10


def main() -> int:
    """0 where nothing was lost, doubled or owned twice; with a fault put in, 0 where that was found."""
    parser = argparse.ArgumentParser(prog="rolling-groups", description=__doc__)
    parser.add_argument("--members", type=int, default=20, help="Of the group.  [default: 20]")
    parser.add_argument("--partitions", type=int, default=40, help="Of the topic.  [default: 40]")
    parser.add_argument(
        "--strategy", choices=["range", COOPERATIVE], action="append", help="Of the classic members; repeatable.  [default: both]"
    )
    parser.add_argument("--fault", choices=SEEDED, help="Let members do what must not be.")
    chosen = parser.parse_args()
    fault = SEEDED[chosen.fault] if chosen.fault else NO_FAULT
    failures = 0
    for strategy in chosen.strategy or ["range", COOPERATIVE]:
        started = time.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="odradek-rolling-groups-") as scratch,
            fault.broker(Path(scratch) / "data", settings=SETTINGS) as broker,
            Rolling(broker.address, chosen.partitions, fault.make_member) as rolling,
        ):
            found = there_and_back(rolling, chosen.members, classic(strategy))
        print(
            f"{strategy}: {chosen.members} members, {rolling.replaced} replaced, {rolling.written} records, "
            f"{rolling.books.assignments} partitions assigned, {len(found)} violations, {time.monotonic() - started:.0f} s",
            flush=True,
        )
        for violation in found[:_SHOWN]:
            print(violation, file=sys.stderr)
        failures += not any(fault.complaint in each for each in found) if chosen.fault else bool(found)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
