"""Clusters of odradek's and Apache Kafka's nodes that log in at each other."""
