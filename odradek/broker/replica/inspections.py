"""Batches whose records take long to look at: looked at beside the event loop, one after the other.

One at a time, since each takes the memory of its records, and since threads would only take the interpreter from each other.
Clients take turns: the next inspection is of the client that has waited longest, however many another client has asked for. A
client's next request begins when its inspections are over, and the memory of requests is bounded, so the queue is, too.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.common.logging import log
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from concurrent.futures import Future

    from odradek.timing.background import Background, Beside, LongWork

T = TypeVar("T")


class Inspections:
    """The queue of a broker's long inspections. Loop thread only."""

    def __init__(self, background: Background) -> None:
        self._background = background
        # The clients' queues, in the order of their turns.
        self._waiting: dict[Hashable, deque[tuple[Callable[[Callable[[], None]], Any], Callable[[Any], None]]]] = {}
        self._present: LongWork | None = None
        self._is_busy = False
        self._is_closed = False

    def run(
        self, inspect: Callable[[Callable[[], None]], T], then: Callable[[T | KafkaError], None], client: Hashable = None
    ) -> None:
        """Call ``inspect`` in a thread, with a function for it to call often, and ``then`` with what it returns, or its error.

        An error that is no KafkaError is logged, and UNKNOWN_SERVER_ERROR. Those of one ``client`` are done in their order.
        """
        self._waiting.setdefault(client, deque()).append((inspect, then))
        self._go_on()

    def close(self) -> None:
        """The broker stops: what is not done ends with NOT_LEADER_OR_FOLLOWER, and its client tries again."""
        self._is_closed = True
        if self._present is not None:
            self._present.cancel()
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._is_busy:
            client = next(iter(self._waiting))
            queue = self._waiting.pop(client)
            inspect, then = queue.popleft()
            if queue:
                self._waiting[client] = queue
            if self._is_closed:
                then(_stopping())
                continue
            self._is_busy = True
            work = self._background.run_long(partial(_run, inspect), partial(self._over, then), name="inspection")
            # Without a thread it is over by now.
            if self._is_busy:
                self._present = work

    def _over(self, then: Callable[[Any], None], outcome: Future[Any]) -> None:
        self._is_busy = False
        self._present = None
        error = outcome.exception()
        if error is not None:
            log.error("records could not be looked at", error)
        try:
            then(outcome.result() if error is None else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        finally:
            self._go_on()


def _run(inspect: Callable[[Callable[[], None]], T], beside: Beside) -> T | KafkaError:
    """What it returns, or its error: one that is raised would take the frames of the work, and its memory, along."""

    def pause() -> None:
        beside.checkpoint()
        if beside.is_cancelled:
            raise _stopping()

    try:
        return inspect(pause)
    except KafkaError as error:
        error.__traceback__ = None
        error.__context__ = None
        return error


def _stopping() -> KafkaError:
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")
