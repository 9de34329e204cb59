"""Waiting that ends when its time is over, or earlier when somebody wakes it. Loop thread only."""

import asyncio

from odradek.timing.timer import Timer


class Wakeup:
    """One waits; whoever has news for it calls ``wake``. A wake that nobody waits for counts for the next wait."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._is_woken = False
        self._waiting: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """End the wait, or the next one."""
        self._is_woken = True
        self._end()

    def forget(self) -> None:
        """Let the next wait last."""
        self._is_woken = False

    async def wait(self, duration_ms: float) -> None:
        """Wait so long, or until woken."""
        if not self._is_woken:
            self._waiting = asyncio.get_running_loop().create_future()
            task = self._timer.call_after(duration_ms, self._end)
            try:
                await self._waiting
            finally:
                task.cancel()
                self._waiting = None
        self._is_woken = False

    def _end(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
