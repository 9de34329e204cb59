"""Compaction (``cleanup.policy=compact``): of each key only the last record stays. Behaves as the log cleaner of Kafka 4.3."""
