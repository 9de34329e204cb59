"""Runs the campaign: ``python -m tests.campaigns.cluster_chaos --minutes 5``."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.cluster_chaos.accounts import Violation
from tests.campaigns.cluster_chaos.chaos import Chaos


def main() -> int:
    """0 where nothing was violated."""
    parser = argparse.ArgumentParser(prog="cluster-chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prog := "odradek-chaos") as scratch:
        chaos = Chaos(Path(scratch), chosen.seed)
        try:
            print(chaos.run(chosen.minutes * 60), flush=True)
        except Violation as violation:
            print(f"{prog}: seed {chosen.seed}: VIOLATION: {violation}\n{chaos.report()}", flush=True)
            return 1
        finally:
            chaos.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
