"""``python -m tests.simulation.transactions``: see ``histories``."""

import sys

from tests.simulation.transactions.histories import main

if __name__ == "__main__":
    sys.exit(main())
