"""Partitions as this broker holds them: appends, fetches and produces that wait, flushing, cleaning, moves."""
