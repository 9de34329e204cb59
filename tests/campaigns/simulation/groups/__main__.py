"""Histories of classic groups, each from its seed, and faults of the coordinator that they have to find: see ``histories``."""

import sys

from tests.campaigns import planted
from tests.campaigns.simulation.groups.histories import CLASSIC
from tests.campaigns.simulation.groups.mutations import CLASSIC as FAULTS

if __name__ == "__main__":
    sys.exit(planted.main(CLASSIC, FAULTS, __doc__ or ""))
