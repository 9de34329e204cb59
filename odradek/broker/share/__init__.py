"""Share partitions: the records in flight of a share group in a partition that this broker leads (KIP-932)."""
