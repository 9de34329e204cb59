"""A broker among others: what ties its partitions to the quorum and to the other brokers."""
