"""A broker in a cluster: its connections to the quorum and to the other brokers."""
