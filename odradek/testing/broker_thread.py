"""A thread with an event loop on which one broker runs, from ``start`` to ``stop``; and its clock and timeline for other threads.

If the caller's wait is interrupted (Ctrl-C, a timeout of the test), the thread still ends. A thread that is never stopped does
not keep the interpreter alive: its broker is killed at exit.

``ThreadedClock`` is the ``SteeredClock`` of such a broker: due work is done when a method returns. ``ThreadedTimeline`` is its
``LiveTimeline``.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Never, TypeVar, Unpack

from odradek.broker.network.event_loop import LoopErrors
from odradek.testing.misuse import at_the_caller
from odradek.testing.timeline.timeline import Timeline
from odradek.timing.driver import loop_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.testing.listening import ListeningBroker
    from odradek.testing.steered_clock import Duration
    from odradek.testing.timeline.events import Event
    from odradek.testing.timeline.live import LiveTimeline

__tracebackhide__ = True

T = TypeVar("T")

_AT_EXIT_S = 5.0
_SIGNALS_S = 0.5


class BrokerThread:
    """The thread of one broker. While it runs, touch ``broker`` on its loop only, by ``run``, except for constant attributes."""

    def __init__(self, broker: ListeningBroker) -> None:
        self.broker = broker
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._leaving = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Return whether the broker was started and not stopped since."""
        return self._loop is not None

    def start(self) -> None:
        """Start the broker. If ``ListeningBroker.start`` raises, end the thread and raise the same."""
        if self._thread is not None:
            raise RuntimeError("the broker is already running")
        started: Future[asyncio.AbstractEventLoop] = Future()
        thread = self._thread = threading.Thread(target=self._run, args=(started,), name="odradek broker", daemon=True)
        self._failure, self._leaving = None, asyncio.Event()
        try:
            thread.start()
            self._loop = started.result()
        except BaseException as error:  # noqa: BLE001  raised again
            # Either the start failed, or the caller was interrupted, maybe when the broker had started already.
            if not started.cancel() and started.exception() is None:
                self._loop = started.result()
                self.stop()
            self._thread = None
            if thread.ident is not None:
                thread.join()
            raise at_the_caller(error)  # noqa: B904  it is the same error
        atexit.register(self._end_with_the_interpreter)

    def stop(self) -> None:
        """Stop the broker in good order, and end the thread. Raises the broker's error, if it failed."""
        self._end(None)

    def kill(self) -> None:
        """End the broker as kill -9 does, and the thread."""
        self._end(self.broker.kill)

    def run(self, make: Callable[[], Coroutine[object, object, T]], within_s: float = inf) -> T:
        """Run ``make()`` on the loop and wait for it. Raises RuntimeError if the broker does not run, and TimeoutError."""
        if self._loop is None:
            raise RuntimeError("the broker is not running: use it inside its with block, and call start() after stop() or kill()")

        async def on_loop() -> T:
            return await make()

        future = asyncio.run_coroutine_threadsafe(on_loop(), self._loop)
        try:
            # A signal that comes as the thread falls asleep is only noticed when it wakes up, so it wakes up often.
            left_s = within_s
            while left_s > 0 and not wait([future], min(left_s, _SIGNALS_S)).done:
                left_s -= _SIGNALS_S
            return future.result(None if left_s > 0 else 0)
        except BaseException as error:  # noqa: BLE001  raised again
            future.cancel()
            raise at_the_caller(error)  # noqa: B904  it is the same error

    def call(self, function: Callable[[], T], within_s: float = inf) -> T:
        """Call ``function`` on the loop. See ``run``."""

        async def on_loop() -> T:
            return function()

        return self.run(on_loop, within_s)

    def call_anyway(self, function: Callable[[], T], within_s: float = inf) -> T:
        """Call ``function`` on the loop; here if the broker does not run: then no other thread uses it."""
        return self.call(function, within_s) if self.is_running else function()

    def _end(self, first: Callable[[], object] | None) -> None:
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            raise RuntimeError("the broker is not running: it was already stopped or killed")
        # From here on the thread ends by itself, even if this wait is interrupted.
        self._thread = self._loop = None
        atexit.unregister(self._end_with_the_interpreter)
        loop.call_soon_threadsafe(self._leave, first)
        thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        try:
            with self.broker.noting(), asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve(started))
        except BaseException as error:  # noqa: BLE001  raised where the thread is ended
            self._failure = error
            if not started.done():
                started.set_exception(error)

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(LoopErrors(self.broker.clock).report)
        try:
            await self.broker.start()
        except BaseException as error:  # noqa: BLE001  raised where the start is waited for
            if started.set_running_or_notify_cancel():
                started.set_exception(error)
            return
        if started.set_running_or_notify_cancel():
            started.set_result(loop)
            await self._leaving.wait()
        with suppress(asyncio.CancelledError):
            await self.broker.restarted()
        if self.broker.is_running:
            await self.broker.stop()
        else:
            # The transports close in one turn of the loop.
            await asyncio.sleep(0)

    def _leave(self, first: Callable[[], object] | None) -> None:
        try:
            if first is not None:
                first()
        finally:
            self._leaving.set()

    def _end_with_the_interpreter(self) -> None:
        """Kill the broker. No thread can be started any more at exit, so it cannot be stopped in good order."""
        thread, loop = self._thread, self._loop
        if thread is not None and loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave, self.broker.kill)
            thread.join(_AT_EXIT_S)


class ThreadedClock:
    """A broker's clock, shared by its processes and views. Steering it raises RuntimeError if the broker does not run."""

    def __init__(self, thread: BrokerThread) -> None:
        self._thread = thread
        self._clock = thread.broker.clock

    @property
    def now(self) -> datetime:
        """Return the broker's time, in UTC: also the time of its records if the topic says LogAppendTime."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    @property
    def is_frozen(self) -> bool:
        """Return whether the clock stands still until ``resume``."""
        return self._clock.is_frozen

    @property
    def speed(self) -> float:
        """The clock's speed relative to the machine's time while it is not frozen. Raises ValueError for a speed of 0 or less."""
        return self._clock.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        def steer() -> None:
            self._clock.speed = speed

        self._thread.call(steer)

    def freeze(self) -> None:
        """Stop the clock. ``advance`` still moves it."""
        self._thread.call(self._clock.freeze)

    def resume(self) -> None:
        """Let the clock run on with ``speed``."""
        self._thread.call(self._clock.resume)

    def advance(self, *wrong: Never, **duration: Unpack[Duration]) -> None:
        """Let so much time pass: see ``SteeredClock.advance``."""
        self._thread.run(lambda: self._clock.advance(*wrong, **duration))


# A hanging broker can still be looked at after this time.
_LOOK_S = 5.0


class ThreadedTimeline(Timeline):
    """A ``LiveTimeline`` seen from another thread than its broker's, from the position ``since`` on."""

    def __init__(self, thread: BrokerThread, live: LiveTimeline, since: int = 0) -> None:
        super().__init__()
        self._thread = thread
        self._live = live
        self._since = since

    @property
    def is_recording(self) -> bool:
        """Return whether the timeline is recording."""
        return self._live.is_recording

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the events so far."""
        if self._live.is_recording:
            with suppress(TimeoutError):
                self._thread.call_anyway(self._live.look, _LOOK_S)
        return tuple(event for event in self._live.events if event.begun >= self._since)

    def start(self, *, limit: int | None = None, records: bool = True) -> None:
        """Record from now on: the last ``limit`` events, or all. Without ``records``, only their sizes are kept.

        Earlier events stay, up to the limit.
        """
        self._thread.call_anyway(lambda: self._live.start(limit=limit, records=records))

    def stop(self) -> None:
        """Stop recording. Recorded events stay."""
        self._thread.call_anyway(self._live.stop)

    def clear(self) -> None:
        """Drop the recorded events."""
        self._thread.call_anyway(self._live.clear)
