"""Histories of share groups, each from its seed, and faults of the product that they have to find: see ``histories``."""

import sys

from tests.campaigns import planted
from tests.campaigns.simulation.shares.histories import SIMULATION
from tests.campaigns.simulation.shares.mutations import FAULTS

if __name__ == "__main__":
    sys.exit(planted.main(SIMULATION, FAULTS, __doc__ or ""))
