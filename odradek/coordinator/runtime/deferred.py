"""Operations that are decided and wait: for their records to be committed. Kafka's DeferredEventQueue."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.coordinator.runtime.result import CoordinatorResult
    from odradek.timing.reply import Reply


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
