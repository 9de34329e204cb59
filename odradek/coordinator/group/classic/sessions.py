"""Members' sessions: a member that sends no request for its session timeout has failed.

Heartbeats are the most frequent requests, so a heartbeat does not touch the timer. It moves the member's deadline. A timer that
fires before the deadline is set again for the rest. The timer is also set again when the deadline becomes earlier.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.result import CoordinatorResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.group.classic.member import Member
    from odradek.coordinator.runtime.shard_context import ShardContext

# The session timeout of a new member with a held JoinGroup: without its member id, the client can neither heartbeat nor leave.
# Kafka's constant, for which it has no config.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

NOTHING: CoordinatorResult[None] = CoordinatorResult((), None)


class Sessions:
    """The deadlines of one shard's members. ``expire`` handles a failed member, ``find`` looks one up."""

    __slots__ = ("_expire", "_find", "_monotonic_ms", "_timers")

    def __init__(
        self,
        timers: ShardContext,
        find: Callable[[str, str], Member | None],
        expire: Callable[[str, str], CoordinatorResult[None]],
    ) -> None:
        self._timers = timers
        self._monotonic_ms = timers.clock.monotonic_ms
        self._find = find
        self._expire = expire

    def touch(self, group: ClassicGroup, member: Member) -> None:
        """Restart the member's session. HOT: reads the clock once and mostly leaves the timer alone."""
        member.session_deadline_ms = deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        if deadline_ms < member.timer_deadline_ms:
            self._arm(group.group_id, member)

    def begin(self, group: ClassicGroup, member: Member) -> None:
        """Begin the session of a member that has no timer: it is new, or has a new member id."""
        member.session_deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        self._arm(group.group_id, member)

    def begin_join(self, group: ClassicGroup, member: Member, pending_deadline_ms: float | None) -> None:
        """Begin the longer session of a new member whose first JoinGroup is held.

        ``pending_deadline_ms`` is the deadline of a pending member, whose timer stays; None if the member was not pending.
        """
        member.session_deadline_ms = self._monotonic_ms() + NEW_MEMBER_JOIN_TIMEOUT_MS
        if pending_deadline_ms is None or pending_deadline_ms > member.session_deadline_ms:
            self._arm(group.group_id, member)
        else:
            member.timer_deadline_ms = pending_deadline_ms

    def begin_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """Begin the wait for a pending member, which must join with its new member id within a session timeout."""
        group.pending_joins[member_id] = self._monotonic_ms() + session_timeout_ms
        self._schedule(group.group_id, member_id, session_timeout_ms)

    def end(self, group: ClassicGroup, member_id: str) -> None:
        """Drop the timer of a member that is removed or has a new member id."""
        self._timers.cancel(_key(group.group_id, member_id))

    def _arm(self, group_id: str, member: Member) -> None:
        member_id = member.member_id
        member.timer_deadline_ms = member.session_deadline_ms
        delay_ms = max(0.0, member.session_deadline_ms - self._monotonic_ms())
        self._schedule(group_id, member_id, delay_ms)

    def _schedule(self, group_id: str, member_id: str, delay_ms: float) -> None:
        self._timers.schedule(_key(group_id, member_id), delay_ms, partial(self._fire, group_id, member_id), retry=False)

    def _fire(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        member = self._find(group_id, member_id)
        if member is not None:
            member.timer_deadline_ms = inf
            if self._monotonic_ms() < member.session_deadline_ms:
                self._arm(group_id, member)
                return NOTHING
        return self._expire(group_id, member_id)


def _key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("session", group_id, member_id)
