"""Histories of consumer groups, each from its seed, and faults of the coordinator that they have to find.

python -m tests.campaigns.simulation.consumer_groups --seeds 20000 [--first 0] [--jobs 2] [--mutations 300]
python -m tests.campaigns.simulation.consumer_groups --seed 17 --trace
"""

import sys

from tests.campaigns import planted
from tests.campaigns.simulation.consumer_groups.histories import SIMULATION
from tests.campaigns.simulation.group_faults import CONSUMER

if __name__ == "__main__":
    sys.exit(planted.main(SIMULATION, CONSUMER, __doc__ or ""))
