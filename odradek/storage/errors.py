"""What can be wrong with a log or a data directory, beyond what a client did."""

from odradek.protocol.errors import ErrorCode, KafkaError


class LogCorrupt(KafkaError):
    """Bytes before the end of a log are not what was written: the partition goes offline (KAFKA_STORAGE_ERROR)."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, reason)


class DataDirectoryLocked(Exception):
    """Another broker holds the lock of this data directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is in use by another broker")
        self.path = path


class InconsistentDataDirectory(Exception):
    """``meta.properties`` belongs to another cluster or node, or cannot be read."""
