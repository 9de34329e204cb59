"""One partition's log: segments and their indexes, appends, reads, flushes, retention, and producer state."""
