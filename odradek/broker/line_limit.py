"""A limit for lines of the log that clients cause: one that is refused again and again would fill the disk with the same line.

In ten seconds, ten lines of one cause and a hundred in all are told. The next line of a cause says how many were left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

    from odradek.timing.clock import Clock

_WINDOW_MS: Final = 10_000.0
_OF_ONE_CAUSE: Final = 10
_IN_ALL: Final = 100
# Causes have names that clients choose.
_MOST_CAUSES: Final = 1_000


class LineLimit:
    """What was told in the present window of time, and what was left out since. Loop thread only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window_end_ms = 0.0
        self._told_in_all = 0
        self._told: dict[Hashable, int] = {}
        self._left_out: dict[Hashable, int] = {}

    def left_out(self, cause: Hashable) -> dict[str, int] | None:
        """None if a line of this cause is to be left out, else what to add to its fields: ``left_out``, if any were."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._window_end_ms:
            self._window_end_ms = now_ms + _WINDOW_MS
            self._told_in_all = 0
            self._told.clear()
        told = self._told.get(cause, 0)
        if told >= _OF_ONE_CAUSE or self._told_in_all >= _IN_ALL:
            if len(self._left_out) < _MOST_CAUSES or cause in self._left_out:
                self._left_out[cause] = self._left_out.get(cause, 0) + 1
            return None
        self._told[cause] = told + 1
        self._told_in_all += 1
        number = self._left_out.pop(cause, 0)
        return {"left_out": number} if number else {}
