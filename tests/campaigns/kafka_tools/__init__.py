"""Kafka's own command-line tools on what odradek has written to disk."""
