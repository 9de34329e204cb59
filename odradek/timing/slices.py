"""Long work on the event loop, in slices: between two of them the loop serves everybody else.

Work is a generator. It yields None where it may be interrupted, which should be about every millisecond, or a ``Reply`` that it
waits for, whose response is sent back in. A slice goes on over such points until ``SLICE_MS`` have passed. Work that is done by
then never leaves the turn of the loop in which it began. Under a clock that stands still, all work is.

If there is more work than one, new work has a short slice before all else: most is done by then. Of the rest, that of the least
weight goes first, and of equal weights the one that began first: a large request delays no smaller one, and few are under way at
once, with what they have made. Every fourth slice is for the work that began first, so that all of it ends.

Left out: work that computes for long without yielding, and work in threads (``background``).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")

# A client that asks meanwhile waits about twice as long at most: for the slice under way, and for one before its answer.
SLICE_MS: Final = 5.0
# Of new work, while there is other work.
_FIRST_SLICE_MS: Final = 1.0
_OLDEST_EVERY: Final = 4
# The weight of work that may take minutes: all requests go first. And of the end of work: it goes before the middle of any other.
HEAVIEST: Final = 1 << 62
LIGHTEST: Final = -1


# (whether it has had a slice, weight, when it began as a number in order; the work, what to send in, its reply)
_Ready = tuple[bool, int, int, "Generator[Reply[Any] | None, Any, Any]", Any, Reply[Any]]


class Slices:
    """Long work of one event loop. Loop thread only."""

    __slots__ = (
        "_call_soon",
        "_count",
        "_is_closed",
        "_is_due",
        "_is_running",
        "_monotonic_ms",
        "_ready",
        "_under_way",
        "slices",
    )

    def __init__(self, monotonic_ms: Callable[[], float], call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._monotonic_ms = monotonic_ms
        self._call_soon = call_soon
        self._ready: list[_Ready] = []
        # How many works were begun, and how many of these have not ended.
        self._count = 0
        self._under_way = 0
        self._is_due = False
        self._is_running = False
        self._is_closed = False
        # How many were run.
        self.slices = 0

    @property
    def is_busy(self) -> bool:
        """True while some work has not ended."""
        return self._under_way > 0

    def run(self, work: Generator[Reply[Any] | None, Any, T], weight: int = 0) -> Reply[T]:
        """Begin ``work``, at once if there is no other; the reply has what it returns, or the exception that it raises."""
        reply: Reply[T] = Reply()
        is_alone = not self._ready and not self._is_running
        self._count += 1
        self._under_way += 1
        is_end = weight == LIGHTEST
        # The end of work is older than any other work, and not new.
        self._put(is_end, weight, self._count - HEAVIEST if is_end else self._count, work, None, reply)
        if is_alone:
            self._run_slice()
        else:
            self._arm()
        return reply

    def close(self) -> None:
        """Run no further slice. Replies are left as they are."""
        self._is_closed = True

    def _put(
        self,
        is_begun: bool,
        weight: int,
        begun: int,
        work: Generator[Reply[Any] | None, Any, Any],
        value: object,
        reply: Reply[Any],
    ) -> None:
        heappush(self._ready, (is_begun, weight, begun, work, value, reply))

    def _arm(self) -> None:
        if self._ready and not self._is_due and not self._is_running and not self._is_closed:
            self._is_due = True
            self._call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_due = False
        if self._ready and not self._is_closed:
            self._run_slice()

    def _run_slice(self) -> None:
        self.slices += 1
        is_begun, weight, begun, work, value, reply = self._next()
        self._is_running = True
        until_ms = self._monotonic_ms() + (SLICE_MS if is_begun or not self._ready else _FIRST_SLICE_MS)
        try:
            while True:
                waits_for = work.send(value)
                value = None
                if waits_for is not None:
                    if not waits_for.done:
                        waits_for.when_done(lambda response: self._resume(weight, begun, work, response, reply))
                        break
                    value = waits_for.response
                if self._monotonic_ms() >= until_ms:
                    self._put(True, weight, begun, work, value, reply)
                    break
        except StopIteration as end:
            self._under_way -= 1
            reply.complete(end.value)
        except Exception as error:  # noqa: BLE001  it is whose who waits for the reply
            self._under_way -= 1
            reply.complete(error)
        finally:
            self._is_running = False
            self._arm()

    def _next(self) -> _Ready:
        ready = self._ready
        if self.slices % _OLDEST_EVERY:
            return heappop(ready)
        oldest = min(range(len(ready)), key=lambda place: ready[place][2])
        chosen = ready[oldest]
        last = ready.pop()
        if oldest < len(ready):
            ready[oldest] = last
            heapify(ready)
        return chosen

    def _resume(
        self, weight: int, begun: int, work: Generator[Reply[Any] | None, Any, Any], response: object, reply: Reply[Any]
    ) -> None:
        self._put(True, weight, begun, work, response, reply)
        self._arm()
