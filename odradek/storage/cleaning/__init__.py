"""Compaction (``cleanup.policy=compact``): keeps only the last record of each key, as Kafka 4.4's log cleaner does."""
