"""Releases acquired records in slices, so that no client waits for thousands of them: of expired locks, of members that left.

The share partitions release one after the other. Each could have work of its own in ``Slices``, but short works are all done in
one turn of the loop, and a hundred of them would stop it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.timing.slices import Slices


class ReleaseQueue:
    """The releases that are due, in the order of their arrival. Loop thread only."""

    __slots__ = ("_due", "_slices")

    def __init__(self, slices: Slices) -> None:
        self._due: deque[Generator[None, None, None]] = deque()
        self._slices = slices

    def add(self, work: Generator[None, None, None]) -> None:
        """Run ``work`` after all earlier ones. It yields about every millisecond."""
        self._due.append(work)
        if len(self._due) == 1:
            self._slices.run(self._run())

    def _run(self) -> Generator[None, None, None]:
        while True:
            try:
                yield from self._due[0]
            except Exception as error:  # noqa: BLE001  other share partitions still release their records
                log.error("cannot release acquired records", error)
            self._due.popleft()
            if not self._due:
                return
            yield
