"""Completes the replies of operations once their records are committed, and fails the others.

A reply's callback may submit the next operation, whose append may complete further replies. Those are queued, so replies are
completed in the order of the decisions.

Until their records are committed, operations are deferred (Kafka: DeferredEventQueue).
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
    """Events, sorted by the high watermark offset they wait for, with a deadline each. Loop thread only."""

    __slots__ = ("_events", "_overdue")

    def __init__(self) -> None:
        # Offsets and deadlines ascend.
        self._events: deque[tuple[int, float, list[DeferredEvent]]] = deque()
        # The earliest events, by offset. Their deadline has passed, but their records may still be committed.
        self._overdue: deque[tuple[int, list[DeferredEvent]]] = deque()

    def add(self, offset: int, deadline_ms: float, events: list[DeferredEvent]) -> None:
        """Add events that wait for ``offset``. Neither offset nor deadline may be lower than those of an event added before."""
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
        """Return the first deadline that has not passed, or None."""
        return self._events[0][1] if self._events else None

    def pass_deadline(self, now_ms: float) -> list[DeferredEvent]:
        """Return the events whose deadline has passed by ``now_ms``. They stay in the queue."""
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
    """The reply to an operation of the shard itself, such as an expired deadline's. It has no time limit."""

    __slots__ = ()


class Answers:
    """The replies of one shard. A hook or callback that raises is reported; the others are still called."""

    __slots__ = ("_committed", "_is_delivering", "_on_fault", "_partition")

    def __init__(self, partition: int, on_fault: Callable[[str, Exception], None]) -> None:
        self._partition = partition
        self._on_fault = on_fault
        self._committed: deque[DeferredEvent] = deque()
        self._is_delivering = False

    def commit(self, events: Iterable[DeferredEvent]) -> None:
        """Call the hooks of events whose records are committed, and queue the events for ``deliver``."""
        for event in events:
            if event.result.on_commit is not None:
                self.guard(event.result.on_commit)
            self._committed.append(event)

    def deliver(self) -> None:
        """Complete the replies of the committed events."""
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
        """Complete each reply with its response."""
        for reply, response in responses:
            self._give(reply, response)

    def fail(self, events: list[DeferredEvent], error: KafkaError) -> None:
        """Correct the state, latest decision first; then fail the replies, in the order of the decisions."""
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
            # One reply may appear in two results: one holds a JoinGroup, another answers it.
            return
        try:
            reply.complete(response)
        except Exception as error:  # noqa: BLE001  it is not the others' fault
            self._report(error)

    def _report(self, error: Exception) -> None:
        self._on_fault(f"a callback of partition {self._partition} failed", error)
