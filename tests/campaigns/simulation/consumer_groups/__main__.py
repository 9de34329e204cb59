"""Histories of consumer groups, each from its seed, and faults of the coordinator that they have to find.

python -m tests.campaigns.simulation.consumer_groups --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]
python -m tests.campaigns.simulation.consumer_groups --seed 17 --trace
"""

import argparse
import sys

from tests.campaigns.simulation import runner
from tests.campaigns.simulation.consumer_groups import mutations
from tests.campaigns.simulation.consumer_groups.histories import SIMULATION


def main(arguments: list[str] | None = None) -> int:
    """1 if a history fails, or a fault that was planted is not found."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--mutations", type=int, default=0, help="plant each fault, and search so many histories for it")
    chosen, others = parser.parse_known_args(arguments)
    about = f"{__doc__.partition(chr(10))[0]} --mutations N plants each fault, and searches N histories for it."
    failed = runner.main(SIMULATION, about, others)
    missed = mutations.search_all(chosen.mutations) if chosen.mutations else 0
    return int(failed or missed > 0)


if __name__ == "__main__":
    sys.exit(main())
