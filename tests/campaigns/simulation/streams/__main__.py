"""Histories of streams groups, each from its seed, and faults of the coordinator that they have to find: see ``histories``."""

import sys

from tests.campaigns import planted
from tests.campaigns.simulation.streams.histories import SIMULATION
from tests.campaigns.simulation.streams.mutations import FAULTS

if __name__ == "__main__":
    sys.exit(planted.main(SIMULATION, FAULTS, __doc__ or ""))
