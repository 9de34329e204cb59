"""The sessions of the members of consumer groups, or of share groups, in one shard.

A heartbeat moves a deadline and leaves the timer alone, as in ``classic.groups``. The deadline of a member that has left is not
cancelled: it expires and does nothing. A cancelled timer could not be restored if the records of that decision are lost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.result import CoordinatorResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.environment import ShardContext

NOTHING_DECIDED: Final[CoordinatorResult[None]] = CoordinatorResult((), None)


class MemberSessions:
    """The sessions of one shard's members. ``expire`` handles a silent member. Loop thread only.

    ``kind`` tells the deadlines of one kind of group from those of another.
    """

    __slots__ = ("_deadlines_ms", "_expire", "_kind", "_monotonic_ms", "_timer_deadlines_ms", "_timers")

    def __init__(self, kind: str, timers: ShardContext, expire: Callable[[str, str], CoordinatorResult[None]]) -> None:
        self._kind = kind
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
        self._timers.schedule((self._kind, *member), delay_ms, partial(self._fire, member))

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


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    first()
    second()
