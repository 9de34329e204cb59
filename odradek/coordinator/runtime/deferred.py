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
    """Events by the offset that the high watermark has to reach. Loop thread only."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        # Offsets ascend.
        self._events: deque[tuple[int, list[DeferredEvent]]] = deque()

    def add(self, offset: int, events: list[DeferredEvent]) -> None:
        """These wait for ``offset``, which is not below that of any event added before."""
        self._events.append((offset, events))

    def take_completed(self, offset: int) -> list[DeferredEvent]:
        """Remove and return the events for which a high watermark of ``offset`` is enough."""
        events = self._events
        completed: list[DeferredEvent] = []
        while events and events[0][0] <= offset:
            completed += events.popleft()[1]
        return completed

    def __len__(self) -> int:
        """How many offsets are waited for."""
        return len(self._events)

    def waiting_for(self, offset: int) -> list[DeferredEvent]:
        """The events that wait for ``offset``, or a lower one; they stay."""
        return [event for waited_for, events in self._events if waited_for <= offset for event in events]

    def take_all(self) -> list[DeferredEvent]:
        """Remove and return all events."""
        events = [event for _, each in self._events for event in each]
        self._events.clear()
        return events
