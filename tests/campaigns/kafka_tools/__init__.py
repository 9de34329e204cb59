"""Kafka's own command-line tools and brokers, on files that odradek wrote, and the reverse."""
