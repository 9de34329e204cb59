"""Runs the campaign: ``python -m tests.campaigns.mixed_clusters --minutes 3``, for each of ``--controllers``."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.mixed_clusters.mixed import Mixed


def main() -> int:
    """0 where no replica differs from another."""
    parser = argparse.ArgumentParser(prog="mixed-clusters", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="under each controller")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--controllers", default="kafka,odradek")
    chosen = parser.parse_args()
    differences = 0
    for controller in chosen.controllers.split(","):
        differences += _run(controller, chosen.minutes * 60, chosen.seed)
    print(f"differences {differences}", flush=True)
    return int(differences > 0)


def _run(controller: str, seconds: float, seed: int) -> int:
    """The number of differences."""
    with tempfile.TemporaryDirectory(prefix="odradek-mixed-") as scratch:
        mixed = Mixed(Path(scratch), seed, is_kafkas_controller=controller == "kafka")
        try:
            mixed.run(seconds)
        except Exception as error:  # noqa: BLE001  whatever it is, it is told with what was found
            mixed.differences.append(f"the run has failed: {type(error).__name__}: {str(error)[:6000]}")
        finally:
            mixed.close()
    print(f"under {controller}'s controller, seed {seed}:", flush=True)
    for line in (*mixed.report, *(f"DIFFERENCE: {each}" for each in mixed.differences)):
        print(f"  {line}", flush=True)
    return len(mixed.differences)


if __name__ == "__main__":
    sys.exit(main())
