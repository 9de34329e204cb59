"""Hosts coordinator shards on partitions of a log: route, load, decide, append, replay, time out."""
