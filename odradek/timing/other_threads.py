"""How much the rest of the process computes, told to a thread that wants to stay out of its way."""

from __future__ import annotations

from time import process_time, thread_time


class OtherThreads:
    """Reads the processor time of all threads but the one that asks. Belongs to that thread."""

    __slots__ = ("_seen_ms",)

    def __init__(self) -> None:
        self._seen_ms = _used_ms()

    def used_ms(self) -> float:
        """Milliseconds of processor time that the others have used since this was last asked, or since it was made."""
        seen_ms, self._seen_ms = self._seen_ms, _used_ms()
        return self._seen_ms - seen_ms


def _used_ms() -> float:
    return (process_time() - thread_time()) * 1000
