"""Produced batches that take long to open, opened beside the event loop one after the other.

One at a time, since each takes the memory of its records, and since threads would only take the interpreter from each other.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from odradek.protocol.record_batch import Buffer
    from odradek.storage.inspection import LongInspection
    from odradek.timing.background import Background, Beside, LongWork


class Inspections:
    """The queue of a broker's long inspections. Loop thread only."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: deque[tuple[LongInspection, Callable[[Buffer | KafkaError], None]]] = deque()
        self._present: LongWork | None = None
        self._is_busy = False
        self._is_closed = False

    def open(self, inspection: LongInspection, then: Callable[[Buffer | KafkaError], None]) -> None:
        """Run ``inspection``, and call ``then`` with the batch to append, or with why there is none."""
        self._waiting.append((inspection, then))
        self._go_on()

    def close(self) -> None:
        """The broker stops: what is not done ends with NOT_LEADER_OR_FOLLOWER, and its producer tries again."""
        self._is_closed = True
        if self._present is not None:
            self._present.cancel()
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._is_busy:
            inspection, then = self._waiting.popleft()
            if self._is_closed:
                then(_stopping())
                continue
            self._is_busy = True
            work = self._background.run_long(partial(_run, inspection), partial(self._over, then), name="inspection")
            # Without a thread it is over by now.
            if self._is_busy:
                self._present = work

    def _over(self, then: Callable[[Buffer | KafkaError], None], outcome: Future[Buffer | KafkaError]) -> None:
        self._is_busy = False
        self._present = None
        try:
            then(outcome.result())
        finally:
            self._go_on()


def _run(inspection: LongInspection, beside: Beside) -> Buffer | KafkaError:
    """The batch, or why it is refused: an error that is raised would take the frames of the work, and its memory, along."""

    def pause() -> None:
        beside.checkpoint()
        if beside.is_cancelled:
            raise _stopping()

    try:
        return inspection.run(pause)
    except KafkaError as error:
        error.__traceback__ = None
        error.__context__ = None
        return error


def _stopping() -> KafkaError:
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker stops")
