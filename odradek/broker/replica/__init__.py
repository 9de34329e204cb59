"""This broker's partitions: appends, delayed fetches and produces, flushing, cleaning, and moves between directories."""
