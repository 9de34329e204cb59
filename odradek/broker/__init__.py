"""The asyncio server: connections, one handler file an API key, topics, partitions, config, metrics."""
