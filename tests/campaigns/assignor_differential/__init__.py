"""The same groups to odradek's assignors and to Apache Kafka's own, and what differs."""
