"""What the controller of a cluster decides: brokers, placement, elections, in-sync replicas, reassignments."""
