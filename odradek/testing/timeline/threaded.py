"""The timeline of a broker in a thread of its own."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from odradek.testing.timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.testing.broker_thread import BrokerThread
    from odradek.testing.timeline.events import Event
    from odradek.testing.timeline.live import LiveTimeline

__tracebackhide__ = True

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
                self._run(self._live.look, _LOOK_S)
        return tuple(event for event in self._live.events if event.begun >= self._since)

    def start(self, *, limit: int | None = None, records: bool = True) -> None:
        """Record from now on: the last ``limit`` events, or all. Without ``records``, only their sizes are kept.

        Earlier events stay, up to the limit.
        """
        self._run(lambda: self._live.start(limit=limit, records=records))

    def stop(self) -> None:
        """Stop recording. Recorded events stay."""
        self._run(self._live.stop)

    def clear(self) -> None:
        """Drop the recorded events."""
        self._run(self._live.clear)

    def _run(self, act: Callable[[], object], within_s: float = inf) -> None:
        if not self._thread.is_running:
            # No other thread uses the timeline.
            act()
            return

        async def on_loop() -> None:
            act()

        self._thread.run(on_loop, within_s)
