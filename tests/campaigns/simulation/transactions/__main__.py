"""Histories of transactions, each from its seed, and faults that they have to find: see ``histories``."""

import sys

from tests.campaigns import planted
from tests.campaigns.simulation.transactions.histories import SIMULATION
from tests.campaigns.simulation.transactions.mutations import FAULTS

if __name__ == "__main__":
    sys.exit(planted.main(SIMULATION, FAULTS, __doc__ or ""))
