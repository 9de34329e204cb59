"""Completes the replies of operations whose records are committed, and fails those of operations whose records are not.

The callback of a reply may submit the next operation, and the append of that one may complete further replies: those are added
to the queue, so that replies are completed in the order of the decisions.

Until then they are deferred (Kafka: DeferredEventQueue).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from odradek.coordinator.runtime.result import LATER
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.coordinator.runtime.result import CoordinatorResult
    from odradek.protocol.errors import KafkaError


class DeferredEvent:
    """A decided operation, and its reply."""

    __slots__ = ("reply", "result")

    def __init__(self, result: CoordinatorResult[Any], reply: Reply[Any]) -> None:
        self.result = result
        self.reply = reply


class DeferredEventQueue:
    """Events by the offset that the high watermark has to reach, and by the time until which they may wait. Loop thread only."""

    __slots__ = ("_events", "_overdue")

    def __init__(self) -> None:
        # Offsets and deadlines ascend.
        self._events: deque[tuple[int, float, list[DeferredEvent]]] = deque()
        # The first ones, by offset: their deadline has passed, and their records may still be committed.
        self._overdue: deque[tuple[int, list[DeferredEvent]]] = deque()

    def add(self, offset: int, deadline_ms: float, events: list[DeferredEvent]) -> None:
        """These wait for ``offset``. Neither that nor the deadline is below those of any event added before."""
        self._events.append((offset, deadline_ms, events))

    def take_completed(self, offset: int) -> list[DeferredEvent]:
        """Remove and return the events for which a high watermark of ``offset`` is enough."""
        completed: list[DeferredEvent] = []
        overdue = self._overdue
        while overdue and overdue[0][0] <= offset:
            completed += overdue.popleft()[1]
        events = self._events
        while events and events[0][0] <= offset:
            completed += events.popleft()[2]
        return completed

    def next_deadline_ms(self) -> float | None:
        """The first deadline that has not passed; None where there is none."""
        return self._events[0][1] if self._events else None

    def pass_deadline(self, now_ms: float) -> list[DeferredEvent]:
        """Return the events whose deadline passes at ``now_ms``. They stay."""
        late: list[DeferredEvent] = []
        events = self._events
        while events and events[0][1] <= now_ms:
            offset, _, each = events.popleft()
            self._overdue.append((offset, each))
            late += each
        return late

    def take_all(self) -> list[DeferredEvent]:
        """Remove and return all events."""
        events = [event for _, each in self._overdue for event in each] + [event for _, _, each in self._events for event in each]
        self._overdue.clear()
        self._events.clear()
        return events


class OwnReply(Reply[Any]):
    """The reply to an operation of the shard itself, a deadline's say. It waits as long as it takes."""

    __slots__ = ()


class Answers:
    """One shard's. A hook or callback that raises is reported, and does not keep the others from being called."""

    __slots__ = ("_committed", "_is_delivering", "_on_fault", "_partition")

    def __init__(self, partition: int, on_fault: Callable[[str, Exception], None]) -> None:
        self._partition = partition
        self._on_fault = on_fault
        self._committed: deque[DeferredEvent] = deque()
        self._is_delivering = False

    def commit(self, events: Iterable[DeferredEvent]) -> None:
        """The records of these are committed: call their hooks, and let them wait for ``deliver``."""
        for event in events:
            if event.result.on_commit is not None:
                self.guard(event.result.on_commit)
            self._committed.append(event)

    def deliver(self) -> None:
        """Complete the replies of what is committed."""
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._committed:
                event = self._committed.popleft()
                self.complete(event.result, event.reply)
        finally:
            self._is_delivering = False

    def complete(self, result: CoordinatorResult[Any], reply: Reply[Any]) -> None:
        """Give the responses of one result. HOT."""
        if result.responses:
            self.give(result.responses)
        if result.response is not LATER:
            self._give(reply, result.response)

    def give(self, responses: Iterable[tuple[Reply[Any], object]]) -> None:
        """Complete these replies."""
        for reply, response in responses:
            self._give(reply, response)

    def fail(self, events: list[DeferredEvent], error: KafkaError) -> None:
        """First correct the state, the latest decision first; then fail the replies, in the order of the decisions."""
        for event in events[::-1]:
            hook = event.result.on_failure
            if hook is not None:
                try:
                    hook(error)
                except Exception as fault:  # noqa: BLE001  it is not the fault of the others
                    self._report(fault)
        for event in events:
            for reply, _ in event.result.responses:
                self._give(reply, error)
            self._give(event.reply, error)

    def give_up(self, events: Iterable[DeferredEvent], error: KafkaError) -> None:
        """Fail the operations that wait for a commit. Their records stay in the log, and may still be committed."""
        for event in events:
            for reply, _ in event.result.responses:
                self._give(reply, error)
            if not isinstance(event.reply, OwnReply):
                self._give(event.reply, error)

    def guard(self, callback: Callable[[], object]) -> None:
        """Call ``callback``; report what it raises."""
        try:
            callback()
        except Exception as error:  # noqa: BLE001  it is not the fault of the others
            self._report(error)

    def _give(self, reply: Reply[Any], response: object) -> None:
        if reply.done:
            # A reply may be in two results: a JoinGroup held by one, and answered by another.
            return
        try:
            reply.complete(response)
        except Exception as error:  # noqa: BLE001  the same
            self._report(error)

    def _report(self, error: Exception) -> None:
        self._on_fault(f"a callback of partition {self._partition} failed", error)
