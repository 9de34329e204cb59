"""The same streams groups to odradek's task assignor and to Apache Kafka's own, and what differs."""
