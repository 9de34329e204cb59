"""One partition's log on disk, in Kafka's own format: segments, indexes, recovery, producer state. No network, no asyncio."""
