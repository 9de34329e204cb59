"""The ``SteeredClock`` of a broker in a thread of its own. What falls due is done when a method returns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Never, TypeVar, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.testing.broker_thread import BrokerThread
    from odradek.testing.steered_clock import Duration

__tracebackhide__ = True

T = TypeVar("T")


class ThreadedClock:
    """It belongs to the broker, over all its processes, and to all who share it. RuntimeError to steer it where none runs."""

    def __init__(self, thread: BrokerThread) -> None:
        self._thread = thread
        self._clock = thread.broker.clock

    @property
    def now(self) -> datetime:
        """The broker's time, in UTC: that of its records where the topic says LogAppendTime."""
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    @property
    def is_frozen(self) -> bool:
        """Return whether it stands still until ``resume``."""
        return self._clock.is_frozen

    @property
    def speed(self) -> float:
        """How many times as fast as the machine's time it passes where it is not frozen. ValueError for what is not above 0."""
        return self._clock.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        def steer() -> None:
            self._clock.speed = speed

        self._run(steer)

    def freeze(self) -> None:
        """Stand still. ``advance`` still moves it."""
        self._run(self._clock.freeze)

    def resume(self) -> None:
        """Go on from where it stands, with ``speed``."""
        self._run(self._clock.resume)

    def advance(self, *wrong: Never, **duration: Unpack[Duration]) -> None:
        """Let so much time pass: see ``SteeredClock.advance``."""
        self._thread.run(lambda: self._clock.advance(*wrong, **duration))

    def _run(self, steer: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return steer()

        return self._thread.run(on_loop)
