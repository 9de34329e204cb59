"""Long work on the event loop, in slices: between two slices the loop serves everybody else.

Work is a generator. It yields None at points where it may be interrupted, about every millisecond. Or it yields a ``Reply`` to
wait for, and receives its response. A slice continues over such points until ``SLICE_MS`` have passed. Work that is done by
then never leaves the turn of the loop in which it began. Under a clock that stands still, all work is done within its first
turn.

If there are several works, a new one gets a short slice first: most are done by then. Works with few slices run before long
work. Long work runs in the order of weight, the least first, and then in the order of beginning: a large request delays no
smaller one. Every fourth slice is for the oldest work, so that all works end.

Work without a weight holds the finished part of its answer in memory. So at most ``_AT_ONCE`` such works go on, and the others
stop after their first slice. When one has ended, the newest of the stopped works goes on, since it may be short. Each fourth
time the oldest does.

Left out: work that computes for long without yielding, and work in threads (``background``).
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")

# A client that asks meanwhile waits at most about twice as long: for the present slice, and for one before its answer.
SLICE_MS: Final = 5.0
# The first slice of new work, while there is other work.
_FIRST_SLICE_MS: Final = 1.0
# Work with this many slices is long. So an answer that takes 10 ms is not behind answers that take seconds.
_FEW_SLICES: Final = 3
_AT_ONCE: Final = 8
_OLDEST_EVERY: Final = 4
# HEAVIEST is for work that may take minutes: all requests run first. LIGHTEST is for the end of work: it runs before the middle
# of any other work.
HEAVIEST: Final = 1 << 62
LIGHTEST: Final = -1


class _Work:
    """A generator that is run in slices, and its progress."""

    __slots__ = ("begun", "generator", "reply", "slices", "weight")

    def __init__(self, weight: int, begun: int, generator: Generator[Reply[Any] | None, Any, Any], reply: Reply[Any]) -> None:
        self.weight = weight
        # Its number in the order of beginning.
        self.begun = begun
        self.generator = generator
        self.reply = reply
        # The number of slices it has had.
        self.slices = 0

    @property
    def is_half_made(self) -> bool:
        """Return whether this is work without a weight after its first slice."""
        return self.slices > 0 and not self.weight

    @property
    def rank(self) -> int:
        """Return the rank: 0 for new work, rising to that of long work. Weighted work is long after one slice; its end is not."""
        if self.weight == LIGHTEST:
            return 1
        return _FEW_SLICES if self.slices and self.weight else min(self.slices, _FEW_SLICES)


# (rank, weight, number; the work, the value to send)
_Ready = tuple[int, int, int, _Work, Any]


class Slices:
    """Long work of one event loop. Loop thread only."""

    __slots__ = (
        "_aside",
        "_at_once",
        "_call_soon",
        "_count",
        "_is_closed",
        "_is_due",
        "_is_running",
        "_monotonic_ms",
        "_ready",
        "_taken_from_aside",
        "_under_way",
        "slices",
    )

    def __init__(self, monotonic_ms: Callable[[], float], call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._monotonic_ms = monotonic_ms
        self._call_soon = call_soon
        self._ready: list[_Ready] = []
        # The number of half-made works in ``_ready``; the works that wait until there are fewer; how many of these went on.
        self._at_once = 0
        self._aside: deque[tuple[_Work, Any]] = deque()
        self._taken_from_aside = 0
        # The number of works that have begun, and of those that have not ended.
        self._count = 0
        self._under_way = 0
        self._is_due = False
        self._is_running = False
        self._is_closed = False
        # The number of slices that were run.
        self.slices = 0

    @property
    def is_busy(self) -> bool:
        """Return whether some work has not ended."""
        return self._under_way > 0

    def run(self, work: Generator[Reply[Any] | None, Any, T], weight: int = 0) -> Reply[T]:
        """Begin ``work``, at once if there is no other. The reply has its return value, or the exception that it raises."""
        reply: Reply[T] = Reply()
        is_alone = not self._ready and not self._is_running
        self._count += 1
        self._under_way += 1
        # The end of work counts as older than any other work.
        begun = self._count - HEAVIEST if weight == LIGHTEST else self._count
        self._put(_Work(weight, begun, work, reply), None)
        if is_alone:
            self._run_slice()
        else:
            self._arm()
        return reply

    def close(self) -> None:
        """Run no further slice. Replies are left as they are."""
        self._is_closed = True

    def _put(self, work: _Work, value: object) -> None:
        if work.is_half_made:
            if work.slices == 1 and self._at_once >= _AT_ONCE:
                self._aside.append((work, value))
                return
            self._at_once += 1
        heappush(self._ready, (work.rank, work.weight, work.begun, work, value))

    def _take_from_aside(self) -> None:
        if self._aside and self._at_once < _AT_ONCE:
            self._taken_from_aside += 1
            is_newest = self._taken_from_aside % _OLDEST_EVERY > 0
            self._put(*(self._aside.pop() if is_newest else self._aside.popleft()))

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
        rank, _, _, work, value = self._next()
        if work.is_half_made:
            self._at_once -= 1
        work.slices += 1
        self._is_running = True
        until_ms = self._monotonic_ms() + (SLICE_MS if rank or not self._ready else _FIRST_SLICE_MS)
        try:
            while True:
                waits_for = work.generator.send(value)
                value = None
                if waits_for is not None:
                    if not waits_for.done:
                        waits_for.when_done(lambda response: self._resume(work, response))
                        break
                    value = waits_for.response
                if self._monotonic_ms() >= until_ms:
                    self._put(work, value)
                    break
        except StopIteration as end:
            self._under_way -= 1
            work.reply.complete(end.value)
        except Exception as error:  # noqa: BLE001  the caller that waits for the reply handles it
            self._under_way -= 1
            work.reply.complete(error)
        finally:
            self._is_running = False
            self._take_from_aside()
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

    def _resume(self, work: _Work, response: object) -> None:
        self._put(work, response)
        self._arm()
