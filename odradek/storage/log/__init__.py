"""One partition's log: segments and their indexes, appends, reads, flushes, retention, and the producers that it knows."""
