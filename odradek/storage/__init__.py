"""Logs on disk, in Kafka's own format: one partition's, and all of a broker's. No network, no asyncio."""
