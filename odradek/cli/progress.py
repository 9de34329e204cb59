"""The progress of long work: a line on stderr that replaces itself each second, if stderr is a terminal."""

import sys
from typing import Final, TextIO

from odradek.timing.clock import Clock

_INTERVAL_MS: Final = 1_000
_CLEAR_LINE: Final = "\r\x1b[K"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal. A process without the stream has None."""
    return stream is not None and stream.isatty()


class Progress:
    """Counts records. ``is_shown`` is False where the records themselves go to the terminal."""

    def __init__(self, clock: Clock, *, is_shown: bool) -> None:
        self._clock = clock
        self._is_shown = is_shown and is_terminal(sys.stderr)
        self._began_ms = clock.monotonic_ms()
        self._next_ms = self._began_ms + _INTERVAL_MS
        self._is_on_screen = False
        self._records = 0

    def add(self, records: int) -> None:
        """Count records, and show their number once a second."""
        self._records += records
        if not self._is_shown:
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + _INTERVAL_MS
            per_s = self._records / (now_ms - self._began_ms) * 1000
            sys.stderr.write(f"{_CLEAR_LINE}{self._records:,} records, {per_s:,.0f} a second")
            sys.stderr.flush()
            self._is_on_screen = True

    def end(self) -> None:
        """Remove the line."""
        if self._is_on_screen:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
            self._is_on_screen = False
