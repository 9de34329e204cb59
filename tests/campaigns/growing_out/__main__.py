"""Runs the campaign: ``python -m tests.campaigns.growing_out``."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.campaigns.growing_out.from_one_node import leave_one_node
from tests.campaigns.growing_out.kafkas_quickstart import come_from_kafka
from tests.campaigns.growing_out.one_directory import RUNS, Run, take_turns
from tests.campaigns.growing_out.without_stopping import KAFKAS_CONTROLLER, OWN_CONTROLLER, move_out_and_back


class _Found(Protocol):
    differences: list[str]

    def report(self) -> str:
        """One line."""


PARTS: dict[str, Callable[[Path], _Found]] = {
    "one-directory": lambda scratch: take_turns(scratch, [Run(*run) for run in RUNS]),
    "quickstart": come_from_kafka,
    "one-node": leave_one_node,
    "own-controller": lambda scratch: move_out_and_back(scratch, OWN_CONTROLLER),
    "kafkas-controller": lambda scratch: move_out_and_back(scratch, KAFKAS_CONTROLLER),
}


def main() -> int:
    """0 where nothing was lost, doubled or begun anew."""
    parser = argparse.ArgumentParser(prog="growing-out", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="One part of it; repeatable.  [default: all]")
    differences = 0
    for part in parser.parse_args().part or PARTS:
        with tempfile.TemporaryDirectory(prefix="odradek-growing-out-") as scratch:
            found = PARTS[part](Path(scratch))
        print(found.report(), flush=True)
        for difference in found.differences:
            print(difference, file=sys.stderr)
        differences += len(found.differences)
    print(f"differences {differences}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
