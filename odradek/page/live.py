"""Live views: the parts of a view are rendered again when something may have changed, and sent to all who look at it.

A ``Feed`` is one view with one query and one user. It renders while somebody is subscribed: soon after a change, and else each
second, since ages and rates pass by themselves. All feeds together take a twenty-fifth of the loop's time at most: the longer a
rendering takes, and the more feeds there are, the less often it comes. A search takes half of the time, in turns of its own,
until it is done. ``events`` is one page's stream of server-sent events:

    event: part      data: {"id": ..., "html": ...}   an element's new content
    event: problem   data: {"text": ...}              why the facts cannot be read now; empty once they can
    event: login     data: {}                         the page needs a login
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.common.logging import log
from odradek.page.facts.source import FactError
from odradek.testing.in_process import NotRunning

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping

    from odradek.page.watch import Watch
    from odradek.timing.clock import Clock

    Load = Callable[[], Awaitable["Rendered"]]

LEAST_S: Final = 0.25
MOST_S: Final = 1.0
_SHARE: Final = 25
_LOOK_S: Final = 0.05
# A line for proxies, and to notice a browser that is gone.
KEEPALIVE_S: Final = 15.0


def event(kind: str, **fields: str) -> bytes:
    """Return a server-sent event. JSON keeps the line ends of its texts out of the stream."""
    return f"event: {kind}\ndata: {json.dumps(fields)}\n\n".encode()


class Rendered(NamedTuple):
    """The parts of a view. ``is_unfinished``: the next rendering goes on with a search."""

    parts: Mapping[str, str]
    is_unfinished: bool = False


class Feed:
    """The parts of a view, kept up to date by ``run``. ``load`` raises FactError."""

    def __init__(self, load: Load, watch: Watch, clock: Clock, count: Callable[[], int]) -> None:
        """``count`` returns the number of feeds."""
        self._load = load
        self._count = count
        self._watch = watch
        self._clock = clock
        self._changed = asyncio.Event()
        self.version = 0
        self.parts: Mapping[str, str] = {}
        self.problem = ""
        self.subscribers = 0

    async def run(self) -> None:
        """Render until cancelled."""
        while True:
            changes, begun_ms = self._watch.changes, self._clock.monotonic_ms()
            parts, problem, is_unfinished = self.parts, "", False
            try:
                parts, is_unfinished = await self._load()
            except FactError as error:
                problem = error.reason
            except NotRunning:
                problem = "the broker is not running"
            except Exception as error:  # noqa: BLE001  a fault of ours ends this rendering, not the page
                log.error("a view of the page failed", error)
                problem = f"{type(error).__name__}: the broker's log says more"
            if not self.version or (parts, problem) != (self.parts, self.problem):
                self.parts, self.problem = parts, problem
                self.version += 1
                self._changed.set()
                self._changed = asyncio.Event()
            took_s = (self._clock.monotonic_ms() - begun_ms) / 1000
            if is_unfinished:
                await asyncio.sleep(took_s)
            else:
                await self._pause(changes, took_s)

    async def newer_than(self, version: int) -> None:
        """Wait for a version after this one."""
        while self.version <= version:
            await self._changed.wait()

    async def _pause(self, changes: int, took_s: float) -> None:
        own_share = _SHARE * self._count()
        rest_s = max(MOST_S, took_s * own_share * 2) - (least_s := max(LEAST_S, took_s * own_share))
        await asyncio.sleep(least_s)
        while rest_s > 0 and self._watch.changes == changes:
            await asyncio.sleep(_LOOK_S)
            rest_s -= _LOOK_S


class Feeds:
    """The feeds that somebody is subscribed to. Loop thread only."""

    def __init__(self, watch: Watch, clock: Clock) -> None:
        self._watch = watch
        self._clock = clock
        self._feeds: dict[Hashable, tuple[Feed, asyncio.Task[None]]] = {}

    async def events(self, key: Hashable, load: Load, *, needs_timeline: bool) -> AsyncGenerator[bytes]:
        """Yield the events of a page until it is closed. Pages with the same ``key`` share a feed."""
        self._watch.enter()
        if needs_timeline:
            self._watch.enter_requests()
        feed = self._subscribe(key, load)
        try:
            sent: dict[str, str] = {}
            problem, version = "", 0
            yield b"retry: 1000\n\n"
            while True:
                try:
                    async with asyncio.timeout(KEEPALIVE_S):
                        await feed.newer_than(version)
                except TimeoutError:
                    yield b": here\n\n"
                    continue
                version = feed.version
                for id_, html in feed.parts.items():
                    if sent.get(id_) != html:
                        sent[id_] = html
                        yield event("part", id=id_, html=html)
                if feed.problem != problem:
                    problem = feed.problem
                    yield event("problem", text=problem)
        finally:
            self._unsubscribe(key, feed)
            if needs_timeline:
                self._watch.leave_requests()
            self._watch.leave()

    async def close(self) -> None:
        """End all feeds."""
        tasks = [task for _, task in self._feeds.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _subscribe(self, key: Hashable, load: Load) -> Feed:
        if key in self._feeds:
            feed, _ = self._feeds[key]
        else:
            feed = Feed(load, self._watch, self._clock, lambda: len(self._feeds))
            self._feeds[key] = feed, asyncio.ensure_future(feed.run())
        feed.subscribers += 1
        return feed

    def _unsubscribe(self, key: Hashable, feed: Feed) -> None:
        feed.subscribers -= 1
        if not feed.subscribers:
            self._feeds.pop(key)[1].cancel()
