"""Histories of consumer groups, each from its seed, and faults of the coordinator that they have to find: see ``groups``."""

import sys

from tests.campaigns import planted
from tests.campaigns.simulation.groups.histories import CONSUMER
from tests.campaigns.simulation.groups.mutations import CONSUMER as FAULTS

if __name__ == "__main__":
    sys.exit(planted.main(CONSUMER, FAULTS, __doc__ or ""))
