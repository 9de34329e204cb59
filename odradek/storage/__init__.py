"""Logs on disk, in Kafka's own format: one partition's log, and all logs of a broker. No network, no asyncio."""
