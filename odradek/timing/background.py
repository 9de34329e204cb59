"""The port for long disk work beside the event loop, as ``Clock`` is the port for time; and its simplest implementation.

    InlineBackground   at once, on the loop                                    tests; a broker that must never use a thread
    ThreadedBackground in threads of its own (``threaded_background``)         ``odradek serve``
    SeededBackground   on the loop, in an order that a seed decides            simulations
                       (``seeded_background``)

Work runs off the loop thread, on files that the loop does not write. Its outcome is delivered on the loop thread. Long work can
run actions on the loop thread meanwhile, and marks the points at which it may be interrupted.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class WorkAbandoned(BaseException):
    """Ends long work whose broker is gone. It is no Exception, so that error handlers do not catch it."""


class Beside(Protocol):
    """The interface of long work to the loop. Belongs to the working thread."""

    @property
    def is_cancelled(self) -> bool:
        """Return whether the work should end as soon as possible."""

    def on_loop(self, action: Callable[[], T]) -> T:
        """Run ``action`` on the loop thread, and wait for it. Its exception is raised here."""

    def checkpoint(self) -> None:
        """Mark a point at which the work may be interrupted. Free of cost in implementations that never interrupt."""

    def rest(self, duration_ms: float) -> None:
        """Leave the processor to other threads for ``duration_ms``, or until the work is cancelled."""


class LongWork(Protocol):
    """Long work, as the loop sees it."""

    def cancel(self) -> None:
        """Ask the work to end. Its outcome is still delivered."""


class Background(Protocol):
    """Runs a broker's long disk work. Loop thread only; each broker has its own.

    ``then`` is called on the loop thread with the work's outcome, a future that is done.
    """

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:
        """Do ``work``. Works with the same ``name`` may wait for each other, but never for works with another name."""

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> LongWork:
        """Do ``work`` that takes seconds or minutes."""

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:
        """Call ``action``, which must not raise, with each of ``items``, several at a time if possible, and wait for all."""

    async def settle(self) -> None:
        """Wait until all outcomes have been delivered."""

    async def finish(self) -> None:
        """Wait until all outcomes have been delivered, and end all threads."""

    def abandon(self) -> None:
        """Behave as if the process had ended: start no further work, and deliver no outcome."""


class InlineBackground:
    """Does all work at once, within the call."""

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:  # noqa: ARG002
        """See Background."""
        then(outcome_of(work))

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> LongWork:  # noqa: ARG002
        """See Background."""
        then(outcome_of(lambda: work(_OVER)))
        return _OVER

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:  # noqa: ARG002
        """See Background."""
        for item in items:
            action(item)

    async def settle(self) -> None:
        """No-op: all work is done within its call."""

    async def finish(self) -> None:
        """No-op: all work is done within its call."""

    def abandon(self) -> None:
        """No-op: all work is done within its call."""


class _Inline:
    """Work that is done before it could be cancelled."""

    is_cancelled = False

    def on_loop(self, action: Callable[[], T]) -> T:
        return action()

    def checkpoint(self) -> None:
        pass

    def rest(self, duration_ms: float) -> None:
        pass

    def cancel(self) -> None:
        pass


_OVER = _Inline()


def outcome_of(work: Callable[[], T]) -> Future[T]:
    """Do ``work``. An exception that is no Exception passes through, and ends the process."""
    outcome: Future[T] = Future()
    try:
        outcome.set_result(work())
    except Exception as error:  # noqa: BLE001  raised where the outcome is read
        outcome.set_exception(error)
    return outcome
