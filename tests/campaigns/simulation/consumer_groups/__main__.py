"""Histories of consumer groups, each from its seed, and faults of the coordinator that they have to find.

python -m tests.campaigns.simulation.consumer_groups --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]
python -m tests.campaigns.simulation.consumer_groups --seed 17 --trace
"""

import sys

from tests.campaigns.simulation import planted
from tests.campaigns.simulation.consumer_groups.histories import SIMULATION
from tests.campaigns.simulation.consumer_groups.mutations import MUTATIONS

if __name__ == "__main__":
    sys.exit(planted.main(SIMULATION, MUTATIONS, __doc__ or ""))
