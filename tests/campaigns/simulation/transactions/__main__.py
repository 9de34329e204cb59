"""``python -m tests.campaigns.simulation.transactions``: see ``histories``."""

import sys

from tests.campaigns.simulation.transactions.histories import main

if __name__ == "__main__":
    sys.exit(main())
