"""The decisions of a cluster's controller: brokers, placement, elections, in-sync replicas, reassignments."""
