"""Opening a log: what must hold of its files, and what a kill or a loss of power may have left."""
