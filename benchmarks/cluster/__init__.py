"""Clusters of three brokers side by side: ``odradek cluster``, and three brokers and a controller of Apache Kafka's."""
