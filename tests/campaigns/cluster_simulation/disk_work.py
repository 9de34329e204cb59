"""Disk work beside the loop, on a disk that takes its time: each work is done, and its outcome told, some virtual time later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.timing.background import InlineBackground, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from random import Random

    from odradek.timing.background import Beside, LongWork

T = TypeVar("T")


class LateBackground:
    """A ``Background`` of one process; ``longest_ms`` is how long a work takes at most."""

    def __init__(self, random: Random, longest_ms: float) -> None:
        self.longest_ms = longest_ms
        self._random = random
        self._under_way = 0
        self._is_abandoned = False
        self._inline = InlineBackground()

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:
        """Part of Background."""
        if self._is_abandoned:
            return
        self._under_way += 1
        delay_s = self._random.random() * self.longest_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, self._finish, work, then)

    def _finish(self, work: Callable[[], Any], then: Callable[[Future[Any]], object]) -> None:
        self._under_way -= 1
        if not self._is_abandoned:
            then(outcome_of(work))

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> LongWork:
        """Part of Background."""
        return self._inline.run_long(work, then, name=name)

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:
        """Part of Background."""
        self._inline.for_each(action, items, name=name)

    async def settle(self) -> None:
        """Part of Background."""
        while self._under_way and not self._is_abandoned:  # noqa: ASYNC110  time is virtual: it costs nothing
            await asyncio.sleep(0.001)

    async def finish(self) -> None:
        """Part of Background."""
        await self.settle()

    def abandon(self) -> None:
        """Part of Background."""
        self._is_abandoned = True
