"""The port through which long disk work leaves the event loop, beside ``Clock``; and the simplest implementation of it.

    InlineBackground   at once, on the loop                                    tests; a broker that must never use a thread
    ThreadedBackground in threads of its own (``threaded_background``)         ``odradek serve``
    SeededBackground   on the loop, in an order that a seed decides            simulations
                       (``seeded_background``)

Work runs away from the loop, on files that the loop does not write; its outcome comes back on the loop thread. Long work may have
something done on the loop meanwhile, and says at which points it may be interrupted.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class WorkAbandoned(BaseException):
    """Ends long work whose broker is gone. No handler of errors is to catch it."""


class Beside(Protocol):
    """What long work is given: its way to the loop. Belongs to the thread that works."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the work is to end as soon as it can."""

    def on_loop(self, action: Callable[[], T]) -> T:
        """Run ``action`` on the loop thread, and wait for it. Raises what it raises."""

    def checkpoint(self) -> None:
        """The work may be interrupted here. Costs nothing where it never is."""

    def rest(self, duration_ms: float) -> None:
        """Leave the processor to others for so long, or until the work is cancelled."""


class LongWork(Protocol):
    """Long work, seen from the loop."""

    def cancel(self) -> None:
        """Ask it to end; its outcome comes as ever."""


class Background(Protocol):
    """Where a broker's long disk work runs. Loop thread only; each broker has its own.

    ``then`` is called on the loop thread with the work's outcome, a future that is done.
    """

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:
        """Do ``work``. Works of one ``name`` may wait for each other, never for those of another."""

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> LongWork:
        """Do ``work`` that takes seconds or minutes."""

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:
        """Call ``action`` with each of ``items``, several at a time if possible, and wait for all. It must not raise."""

    async def finish(self) -> None:
        """Wait until all outcomes have been delivered, and let go of all threads."""

    def abandon(self) -> None:
        """End as if the process ended: nothing more is begun, and no outcome is delivered."""


class InlineBackground:
    """Does everything at once, where it is asked for."""

    def run(self, work: Callable[[], T], then: Callable[[Future[T]], object], *, name: str = "disk") -> None:  # noqa: ARG002
        """Part of Background."""
        then(outcome_of(work))

    def run_long(self, work: Callable[[Beside], T], then: Callable[[Future[T]], object], *, name: str) -> LongWork:  # noqa: ARG002
        """Part of Background."""
        then(outcome_of(lambda: work(_OVER)))
        return _OVER

    def for_each(self, action: Callable[[T], object], items: Iterable[T], *, name: str) -> None:  # noqa: ARG002
        """Part of Background."""
        for item in items:
            action(item)

    async def finish(self) -> None:
        """Part of Background: nothing is ever under way."""

    def abandon(self) -> None:
        """Part of Background: nothing is ever under way."""


class _Inline:
    """Work that is over before anybody could cancel it."""

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
    """Do ``work``. What is no Exception passes through: the process ends."""
    outcome: Future[T] = Future()
    try:
        outcome.set_result(work())
    except Exception as error:  # noqa: BLE001  it is raised where the outcome is asked for
        outcome.set_exception(error)
    return outcome
