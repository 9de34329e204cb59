"""The clock of a broker with real clients: the machine's time, until a test advances, stops or speeds it up.

Every wait in the broker uses this clock; clients use the machine's. Time never goes back while a broker runs.

In a silence, time passes at the broker, and no client is heard. A client's request that arrives meanwhile is handled after the
silence. So the same time passes for all clients, however fast they are: a session ends when its timeout is over, and a polling
consumer does not poll a million times a week.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, TypedDict, Unpack

from odradek.testing.misuse import CompletedCall, ensure_by_name
from odradek.timing.reply import Reply
from odradek.timing.system_clock import SystemClock, monotonic_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.broker.start.server import Broker as BrokerCore
    from odradek.common.context import RequestContext
    from odradek.timing.clock import Clock, ClockedTimer


class _ClosedGate:
    """A gate that opens once, for all requests that wait by then."""

    def __init__(self) -> None:
        self._waiting: list[Reply[None]] = []

    def admit(self, context: RequestContext, request: Any) -> Reply[None]:  # noqa: ARG002  every request is held
        """Hold the request until the gate opens."""
        self._waiting.append(reply := Reply[None]())
        return reply

    def release(self, context: RequestContext, response: Any) -> Any:  # noqa: ARG002  nothing is changed
        """Return the response unchanged."""
        return response

    def open(self) -> None:
        for reply in self._waiting:
            reply.complete(None)


@contextmanager
def silence(core: BrokerCore) -> Iterator[None]:
    """Hear no client of ``core`` within the ``with``. Call it on the loop thread."""
    gate = _ClosedGate()
    core.dispatcher.add_gate(gate, first=True)
    if core.connections is not None:
        core.connections.begin_silence()
    try:
        yield
    finally:
        if core.connections is not None:
            core.connections.end_silence()
        core.dispatcher.remove_gate(gate)
        gate.open()


__tracebackhide__ = True

MOST_SPEED: Final = 1_000_000_000
# The last second of the year 9999, the latest that ``datetime`` has.
_LAST_MS: Final = 253_402_300_799_000
# Turns of the loop after each deadline, for the work that follows from it.
_TURNS = 3


class Duration(TypedDict, total=False):
    """A duration in the units of ``timedelta``."""

    weeks: float
    days: float
    hours: float
    minutes: float
    seconds: float
    milliseconds: float


class _Course(NamedTuple):
    """A course of time: ``from_ms`` when the machine's clock read ``since``, then ``rate_ms`` for each unit of that clock."""

    since: float
    from_ms: float
    rate_ms: float


class SteeredClock:
    """A steerable ``Clock``. Any thread may read it; steer it on its broker's loop. It has one broker at a time."""

    __slots__ = ("_core", "_course", "_machine", "_read", "_speed", "_unit_ms", "_wall_offset_ms")

    def __init__(self, machine: Clock | None = None) -> None:
        """Make a clock that follows ``machine``, by default the machine's own clock."""
        self._machine = machine
        # A broker reads its clock several times for each request: the machine's seconds are read without a call in between.
        self._read, self._unit_ms = (monotonic_s, 1000.0) if machine is None else (machine.monotonic_ms, 1.0)
        now = self._read()
        now_ms = now * self._unit_ms
        # One object, so that another thread never reads half of it.
        self._course = _Course(now, now_ms, self._unit_ms)
        self._speed = 1.0
        self._wall_offset_ms = (machine or SystemClock()).now_ms() - now_ms
        self._core: BrokerCore | None = None

    @property
    def passes_by_itself(self) -> bool:
        """Return True: an event loop wakes its timers, with the help of ``machine_ms``."""
        return True

    def now_ms(self) -> int:
        """Return wall time in milliseconds since the Unix epoch: the machine's at first."""
        return int(self.monotonic_ms() + self._wall_offset_ms)

    def monotonic_ms(self) -> float:
        """Return milliseconds since an arbitrary start; never goes back."""
        since, from_ms, rate_ms = self._course
        return from_ms + (self._read() - since) * rate_ms

    def machine_ms(self, duration_ms: float) -> float:
        """See ``Clock``."""
        speed = self._course.rate_ms / self._unit_ms
        return duration_ms / speed if speed else inf

    def attach(self, timer: ClockedTimer) -> None:
        """Do nothing: the event loop wakes the timer."""

    def detach(self, timer: ClockedTimer) -> None:
        """Do nothing."""

    def serve(self, core: BrokerCore | None) -> None:
        """Steer the timers of this process of a broker; None for no process."""
        self._core = core

    def copy(self) -> SteeredClock:
        """Return another clock that shows the same time until either is steered."""
        other = SteeredClock(self._machine)
        other.read_as(self)
        return other

    def read_as(self, other: SteeredClock) -> None:
        """Show the same time as ``other``. This alone may turn time back: call it while no broker runs with this clock."""
        self._course, self._speed, self._wall_offset_ms = other._course, other._speed, other._wall_offset_ms

    @property
    def is_frozen(self) -> bool:
        """Return whether the clock stands still until ``resume``."""
        return not self._course.rate_ms

    @property
    def speed(self) -> float:
        """The clock's speed relative to the machine's time while it is not frozen. Raises ValueError for a speed of 0 or less."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if isinstance(speed, bool) or not isinstance(speed, int | float):
            raise TypeError(f"a speed must be a number, not {speed!r}")
        if not 0 < speed <= MOST_SPEED:
            raise ValueError(f"a speed must be above 0 and at most {MOST_SPEED:,}, not {speed}; freeze() stops the clock")
        self._speed = speed
        if not self.is_frozen:
            self._steer(self.monotonic_ms(), speed)

    def freeze(self) -> CompletedCall:
        """Stop the clock. ``advance`` still moves it."""
        self._steer(self.monotonic_ms(), 0.0)
        return CompletedCall()

    def resume(self) -> CompletedCall:
        """Let the clock run on with ``speed``."""
        self._steer(self.monotonic_ms(), self._speed)
        return CompletedCall()

    async def advance(self, *wrong: Never, **duration: Unpack[Duration]) -> None:
        """Let so much time pass. On return, all due work is done, one deadline after the other, and its output is sent.

        The machine's time does not count meanwhile. A client's request that arrives meanwhile is handled afterwards. Raises
        TypeError without a duration; ValueError for a negative one, and for one that ends after the year 9999.
        """
        ensure_by_name("advance", "advance(seconds=5)", wrong)
        length = _length(duration)
        if self.now_ms() + length / timedelta(milliseconds=1) > _LAST_MS:
            raise ValueError(f"cannot advance by {length}: time ends with the year 9999")
        began_ms, was_frozen = self.monotonic_ms(), self.is_frozen
        self._steer(began_ms, 0.0)
        try:
            with nullcontext() if self._core is None else silence(self._core):
                await self._pass(began_ms + length / timedelta(milliseconds=1))
        finally:
            self._steer(self.monotonic_ms(), 0.0 if was_frozen else self._speed)

    async def _pass(self, end_ms: float) -> None:
        while True:
            due_ms = inf if self._core is None else self._core.timer.next_deadline_ms()
            if due_ms is None or due_ms > end_ms:
                break
            self._steer(max(due_ms, self.monotonic_ms()), 0.0)
            await self._do_what_is_due()
        self._steer(end_ms, 0.0)
        await self._do_what_is_due()

    async def _do_what_is_due(self) -> None:
        core = self._core
        if core is None:
            return
        core.timer.advance()
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if core is self._core:
            await core.background.settle()

    def _steer(self, from_ms: float, speed: float) -> None:
        self._course = _Course(self._read(), from_ms, speed * self._unit_ms)
        if speed and self._core is not None and self._core.timer_driver is not None:
            self._core.timer_driver.rearm()


def _length(duration: Mapping[str, object]) -> timedelta:
    """Return the duration. Raises TypeError, ValueError."""
    units = ", ".join(Duration.__annotations__)
    if not duration:
        raise TypeError(f"advance() needs a duration in {units}: use, for example, advance(seconds=5)")
    for unit, number in duration.items():
        if unit not in Duration.__annotations__:
            nearest = get_close_matches(unit, Duration.__annotations__, n=1)
            meant = f"; did you mean {nearest[0]}?" if nearest else ""
            raise TypeError(f"a duration must be in {units}, not in {unit!r}{meant}")
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"a duration must have a number of {unit}, not {number!r}")
    try:
        length = timedelta(**duration)  # type: ignore[arg-type]  # they are numbers
    except (OverflowError, ValueError) as error:
        raise ValueError(f"not a valid duration: {dict(duration)}: {error}") from None
    if length < timedelta(0):
        raise ValueError(f"time cannot go back: {length}")
    return length
