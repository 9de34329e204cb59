"""Opens a log: checks its files, and repairs them after a kill or a loss of power."""
