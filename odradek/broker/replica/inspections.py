"""The queue of batches whose records take long to inspect. They are inspected beside the event loop, one at a time.

One at a time, since each holds its records in memory, and since threads would only compete for the interpreter. Clients take
turns: the next inspection is for the client that has waited longest, however many another client has queued. A client's next
request begins after its inspections are over, and the memory of requests is bounded. So the queue is bounded, too.
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
        """Call ``inspect`` in a thread, then call ``then`` with its result or error.

        ``inspect`` gets a function that it must call often. An error other than KafkaError is logged and becomes
        UNKNOWN_SERVER_ERROR. The inspections of one ``client`` keep their order.
        """
        self._waiting.setdefault(client, deque()).append((inspect, then))
        self._go_on()

    def close(self) -> None:
        """Stop. Open inspections end with NOT_LEADER_OR_FOLLOWER, so that their clients try again."""
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
            # If there are no threads, it is over by now.
            if self._is_busy:
                self._present = work

    def _over(self, then: Callable[[Any], None], outcome: Future[Any]) -> None:
        self._is_busy = False
        self._present = None
        error = outcome.exception()
        if error is not None:
            log.error("cannot check records", error)
        try:
            then(outcome.result() if error is None else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        finally:
            self._go_on()


def _run(inspect: Callable[[Callable[[], None]], T], beside: Beside) -> T | KafkaError:
    """Return the result or error of ``inspect``. A raised error would keep the frames of the work, and their memory."""

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
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker is stopping")
