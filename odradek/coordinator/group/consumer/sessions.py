"""Members' sessions, and the time limits for revocations and for classic members to join and to sync.

A heartbeat moves a deadline and leaves the timer alone, as in ``classic.sessions``. Deadlines of a member that has left, or given
its partitions up, are not cancelled: they expire and do nothing. A cancelled timer could not be restored if the records of that
decision are lost.
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
    """The sessions of one shard. ``expire`` handles a silent member. Loop thread only."""

    __slots__ = ("_deadlines_ms", "_expire", "_monotonic_ms", "_timer_deadlines_ms", "_timers")

    def __init__(self, timers: ShardContext, expire: Callable[[str, str], CoordinatorResult[None]]) -> None:
        self._timers = timers
        self._monotonic_ms = timers.clock.monotonic_ms
        self._expire = expire
        self._deadlines_ms: dict[tuple[str, str], float] = {}
        self._timer_deadlines_ms: dict[tuple[str, str], float] = {}

    def touch(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Restart the member's session. HOT."""
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
        """Drop the deadline unless the member has come back."""
        if self._deadlines_ms.get(member) == deadline_ms:
            del self._deadlines_ms[member]

    def begin_revocation(
        self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]
    ) -> None:
        """Give a member ``delay_ms`` to give partitions up; then ``expire`` checks whether it has."""
        self._timers.schedule(("consumer-revocation", group_id, member_id), delay_ms, expire)

    def await_join(self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]) -> None:
        """Give a classic member ``delay_ms`` to join again, counted from the first request to do so."""
        key = ("consumer-join", group_id, member_id)
        if not self._timers.is_scheduled(key):
            self._timers.schedule(key, delay_ms, expire)

    def end_join(self, group_id: str, member_id: str) -> None:
        """End the time limit, as the member has joined again."""
        self._timers.cancel(("consumer-join", group_id, member_id))

    def await_sync(self, group_id: str, member_id: str, delay_ms: int, expire: Callable[[], CoordinatorResult[None]]) -> None:
        """Give a classic member that has joined ``delay_ms`` to send its SyncGroup."""
        self._timers.schedule(("consumer-sync", group_id, member_id), delay_ms, expire)

    def end_sync(self, group_id: str, member_id: str) -> None:
        """End the time limit, as the member has sent its SyncGroup."""
        self._timers.cancel(("consumer-sync", group_id, member_id))

    def forget_timeouts(self, group_id: str, member_id: str) -> None:
        """Drop a member's deadlines from before the group was a classic one.

        The deadline of a revocation stays. It finds the member in another epoch or protocol, and does nothing.
        """
        self.end_join(group_id, member_id)
        self.end_sync(group_id, member_id)


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    first()
    second()
