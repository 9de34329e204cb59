"""The sessions of members, how long they may take to give partitions up, and classic members to join and to sync.

A heartbeat moves a deadline and leaves the timer alone, as in ``classic.sessions``. What is left of a member that has gone, or
that has given its partitions up, runs out and finds nothing to do: a timer that was cancelled when that was decided could not be
brought back if its records are lost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.result import CoordinatorResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.shard_context import ShardContext

NOTHING_DECIDED: Final[CoordinatorResult[None]] = CoordinatorResult((), None)


class ConsumerSessions:
    """Of one shard. ``expire`` decides what it means that a member is silent. Loop thread only."""

    __slots__ = ("_deadlines_ms", "_expire", "_monotonic_ms", "_timer_deadlines_ms", "_timers")

    def __init__(self, timers: ShardContext, expire: Callable[[str, str], CoordinatorResult[None]]) -> None:
        self._timers = timers
        self._monotonic_ms = timers.clock.monotonic_ms
        self._expire = expire
        self._deadlines_ms: dict[tuple[str, str], float] = {}
        self._timer_deadlines_ms: dict[tuple[str, str], float] = {}

    def touch(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Begin the member's session anew. HOT."""
        member = (group_id, member_id)
        deadline_ms = self._deadlines_ms[member] = self._monotonic_ms() + timeout_ms
        known = self._timer_deadlines_ms.get(member)
        if known is None or deadline_ms < known:
            self._arm(member, deadline_ms)

    def _arm(self, member: tuple[str, str], deadline_ms: float) -> None:
        self._timer_deadlines_ms[member] = deadline_ms
        delay_ms = max(0.0, deadline_ms - self._monotonic_ms())
        self._timers.schedule(("consumer-session", *member), delay_ms, partial(self._fire, member))

    def _fire(self, member: tuple[str, str]) -> CoordinatorResult[None]:
        self._timer_deadlines_ms.pop(member, None)
        deadline_ms = self._deadlines_ms.get(member, 0.0)
        if self._monotonic_ms() < deadline_ms:
            self._arm(member, deadline_ms)
            return NOTHING_DECIDED
        result = self._expire(*member)
        forget = partial(self._forget, member, deadline_ms)
        if not result.records:
            forget()
            return result
        result.on_commit = forget if result.on_commit is None else partial(_both, forget, result.on_commit)
        return result

    def _forget(self, member: tuple[str, str], deadline_ms: float) -> None:
        """Unless the member has come back."""
        if self._deadlines_ms.get(member) == deadline_ms:
            del self._deadlines_ms[member]

    def begin_revocation(
        self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]
    ) -> None:
        """Give a member that long to give partitions up; ``expire`` finds out whether it has."""
        self._timers.schedule(("consumer-revocation", group_id, member_id), delay_ms, expire)

    def await_join(self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]) -> None:
        """Give a classic member that long to join again, from when it was first told to."""
        key = ("consumer-join", group_id, member_id)
        if not self._timers.is_scheduled(key):
            self._timers.schedule(key, delay_ms, expire)

    def end_join(self, group_id: str, member_id: str) -> None:
        """The member has done so."""
        self._timers.cancel(("consumer-join", group_id, member_id))

    def await_sync(self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]) -> None:
        """Give a classic member that has joined that long to send its SyncGroup."""
        self._timers.schedule(("consumer-sync", group_id, member_id), delay_ms, expire)

    def end_sync(self, group_id: str, member_id: str) -> None:
        """The member has done so."""
        self._timers.cancel(("consumer-sync", group_id, member_id))

    def forget_timeouts(self, group_id: str, member_id: str) -> None:
        """Drop the deadlines of a member of this id from before the group was a classic one.

        The deadline of a revocation stays: it finds the member in another epoch or protocol, and does nothing.
        """
        self.end_join(group_id, member_id)
        self.end_sync(group_id, member_id)


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    first()
    second()
