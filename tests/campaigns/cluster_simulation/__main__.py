"""Histories of clusters, each from its seed, and faults of the product that they have to find.

python -m tests.campaigns.cluster_simulation --seeds 20000 [--first 0] [--jobs 2] [--mutations 600]
python -m tests.campaigns.cluster_simulation --seed 17 --trace
"""

import sys

from tests.campaigns import planted
from tests.campaigns.cluster_simulation.histories import SIMULATION
from tests.campaigns.cluster_simulation.mutations import FAULTS

if __name__ == "__main__":
    sys.exit(planted.main(SIMULATION, FAULTS, __doc__ or ""))
