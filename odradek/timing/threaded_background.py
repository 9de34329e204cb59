"""Long disk work in threads of its own: a small pool for each name, and a thread for each long work.

A thread runs in the context (``contextvars``) of the caller. Threads end with ``finish``. After ``abandon`` a thread ends with
its present work.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.timing.background import WorkAbandoned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.timing.background import Beside

T = TypeVar("T")

_POOL_THREADS = 4
# A disk writes many files at once as fast as one file.
_FOR_EACH_THREADS = 16


class ThreadedBackground:
    """A ``Background`` with threads. ``beside_long_work`` makes a context manager around long work, for process settings."""

    def __init__(self, beside_long_work: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._beside_long_work = beside_long_work
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._long: set[_Long] = set()
        self._running = 0
        self._idle: asyncio.Future[None] | None = None
        self._is_abandoned = False

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:
        """See Background."""
        if self._is_abandoned:
            return
        over = self._begun(then)
        self._pool(name).submit(copy_context().run, work).add_done_callback(over)

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> _Long:
        """See Background."""
        long = _Long(asyncio.get_running_loop())
        if self._is_abandoned:
            return long
        self._long.add(long)

        def over(outcome: Future[T]) -> None:
            self._long.discard(long)
            then(outcome)

        outcome: Future[T] = Future()
        outcome.add_done_callback(self._begun(over))

        def main() -> None:
            try:
                with self._beside_long_work():
                    result = work(long)
            except BaseException as error:  # noqa: BLE001  raised where the outcome is read
                outcome.set_exception(error)
            else:
                outcome.set_result(result)

        threading.Thread(target=copy_context().run, args=(main,), name=name, daemon=True).start()
        return long

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:
        """See Background."""
        with ThreadPoolExecutor(_FOR_EACH_THREADS, name) as pool:
            for outcome in [pool.submit(copy_context().run, action, item) for item in items]:
                outcome.result()

    async def settle(self) -> None:
        """See Background."""
        while self._running:
            if self._idle is None:
                self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    async def finish(self) -> None:
        """See Background."""
        await self.settle()
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.shutdown()

    def abandon(self) -> None:
        """Start no further work. Each thread finishes its present work."""
        self._is_abandoned = True
        for long in self._long:
            long.abandon()
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, name: str) -> ThreadPoolExecutor:
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = ThreadPoolExecutor(_POOL_THREADS, name)
        return pool

    def _begun(self, then: Callable[[Future[Any]], object]) -> Callable[[Future[Any]], None]:
        """Count a work as begun. Return the callback for its thread to call at the end."""
        loop = asyncio.get_running_loop()
        context = copy_context()
        self._running += 1

        def deliver(outcome: Future[Any]) -> None:
            self._running -= 1
            if not self._is_abandoned:
                then(outcome)
            if not self._running and self._idle is not None:
                self._idle.set_result(None)
                self._idle = None

        def over(outcome: Future[Any]) -> None:
            # The loop may be closed by now; then the outcome has no receiver.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(deliver, outcome, context=context)

        return over


class _Long:
    """Both ends of a long work. It implements Beside and LongWork."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._cancelled = threading.Event()
        self._is_abandoned = False

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        self._cancelled.set()

    def abandon(self) -> None:
        self._is_abandoned = True
        self._cancelled.set()

    def on_loop(self, action: Callable[[], T]) -> T:
        outcome: Future[T] = Future()

        def run() -> None:
            if self._is_abandoned:
                outcome.set_exception(WorkAbandoned())
                return
            try:
                outcome.set_result(action())
            except BaseException as error:  # noqa: BLE001  raised in the thread that asked
                outcome.set_exception(error)

        self._loop.call_soon_threadsafe(run, context=copy_context())
        return outcome.result()

    def checkpoint(self) -> None:
        if self._is_abandoned:
            raise WorkAbandoned

    def rest(self, duration_ms: float) -> None:
        self._cancelled.wait(duration_ms / 1000)
