"""Brokers of odradek's and of Apache Kafka's in one cluster: whoever leads, all replicas are to have the same bytes."""
