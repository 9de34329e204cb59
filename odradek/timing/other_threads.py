"""Measures the processor time of the process's other threads, for a thread that yields to them."""

from __future__ import annotations

from time import process_time, thread_time


class OtherThreads:
    """Reads the processor time of all threads except the calling one. Belongs to that thread."""

    __slots__ = ("_seen_ms",)

    def __init__(self) -> None:
        self._seen_ms = _used_ms()

    def used_ms(self) -> float:
        """Milliseconds of processor time that the other threads have used since the last call, or since construction."""
        seen_ms, self._seen_ms = self._seen_ms, _used_ms()
        return self._seen_ms - seen_ms


def _used_ms() -> float:
    return (process_time() - thread_time()) * 1000
