"""The asyncio server: connections, one file an API, partitions, coordinators, security, metrics."""
