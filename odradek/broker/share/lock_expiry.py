"""Lets acquisition locks expire in slices, so that no client waits for thousands of them.

The locks of all share partitions expire one after the other. Each partition could have work of its own in ``Slices``, but short
works are all done in one turn of the loop, and a hundred of them would stop it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.timing.slices import Slices


class LockExpiry:
    """The expiries that are due, in the order of their arrival. Loop thread only."""

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
        while self._due:
            try:
                yield from self._due[0]
            except Exception as error:  # noqa: BLE001  the locks of other share partitions still expire
                log.error("cannot let acquisition locks expire", error)
            self._due.popleft()
            yield
