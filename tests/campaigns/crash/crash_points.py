"""Every named crash point of transactions: a real broker is killed at the point, restarted, and checked.

``points.points`` lists the points, ``points.run`` the checks. The program prints a line for each point and scenario: what was
killed and what was found. The exit status is 1 unless all checks hold.

    python -m tests.campaigns.crash.crash_points
    python -m tests.campaigns.crash.crash_points --only markers --jobs 1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.campaigns.crash.points.points import POINTS
from tests.campaigns.crash.points.run import Outcome, make_templates, run_point

if TYPE_CHECKING:
    from tests.campaigns.crash.points.points import CrashPoint
    from tests.campaigns.crash.points.scenario import Scenario


def main() -> int:
    """Run them and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", help="the points whose name, or whose scenario's, has this in it")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    arguments = parser.parse_args()
    runs = [
        (point, scenario) for point in POINTS for scenario in point.scenarios if arguments.only in f"{point.name} ({scenario})"
    ]
    if not runs:
        parser.error(f"no point is called anything like {arguments.only!r}")
    started_s = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(arguments.jobs) as pool:
        templates = make_templates(Path(root))

        def run(number: int, point: CrashPoint, scenario: Scenario) -> Outcome:
            directory = Path(root) / str(number)
            directory.mkdir()
            return run_point(point, scenario, templates, directory)

        for outcome in pool.map(run, range(len(runs)), *zip(*runs, strict=True)):
            print(outcome, flush=True)
            if outcome.error:
                failed += 1
                print(outcome.log, file=sys.stderr)
    points = len({point.name for point, _ in runs})
    verdict = f"{failed} DO NOT HOLD" if failed else "all hold"
    print(f"{points} crash points, {len(runs)} kills and restarts in {time.monotonic() - started_s:.0f} s: {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
