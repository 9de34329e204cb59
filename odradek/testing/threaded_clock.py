"""The ``SteeredClock`` of a broker in a thread of its own. Due work is done when a method returns."""

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

        self._run(steer)

    def freeze(self) -> None:
        """Stop the clock. ``advance`` still moves it."""
        self._run(self._clock.freeze)

    def resume(self) -> None:
        """Let the clock run on with ``speed``."""
        self._run(self._clock.resume)

    def advance(self, *wrong: Never, **duration: Unpack[Duration]) -> None:
        """Let so much time pass: see ``SteeredClock.advance``."""
        self._thread.run(lambda: self._clock.advance(*wrong, **duration))

    def _run(self, steer: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return steer()

        return self._thread.run(on_loop)
