"""``log.cleaner.io.max.bytes.per.second``: how far a clean is ahead of it."""


class Throttle:
    """Counts the bytes that one clean reads and writes, since ``began_ms`` (monotonic)."""

    __slots__ = ("_began_ms", "_bytes", "_bytes_per_ms")

    def __init__(self, bytes_per_second: float, began_ms: float) -> None:
        self._bytes_per_ms = bytes_per_second / 1000
        self._began_ms = began_ms
        self._bytes = 0

    def ahead_ms(self, size_bytes: int, now_ms: float) -> float:
        """For how long the clean is to wait, now that it has read and written ``size_bytes`` more; below 0 where it is late."""
        self._bytes += size_bytes
        return self._bytes / self._bytes_per_ms - (now_ms - self._began_ms)
