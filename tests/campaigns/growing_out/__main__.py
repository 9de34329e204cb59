"""Runs the campaign: ``python -m tests.campaigns.growing_out``."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.growing_out.one_directory import RUNS, Run, take_turns


def main() -> int:
    """0 where nothing was lost, doubled or begun anew."""
    argparse.ArgumentParser(prog="growing-out", description=__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="odradek-growing-out-") as scratch:
        one_directory = take_turns(Path(scratch), [Run(*run) for run in RUNS])
    print(one_directory.report(), flush=True)
    for difference in one_directory.differences:
        print(difference, file=sys.stderr)
    print(f"differences {len(one_directory.differences)}")
    return 1 if one_directory.differences else 0


if __name__ == "__main__":
    sys.exit(main())
