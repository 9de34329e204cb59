"""Members' sessions: a member that is not heard of for its session timeout is taken to have failed.

A heartbeat is the most frequent request there is, so it does not touch the timer: it moves the member's deadline, and the timer,
when it fires early, is set again for what is left. It is set anew only where a deadline comes forward.
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

# A JoinGroup of somebody who does not know its member id yet is given up after this long: its client may be gone, and without an
# id cannot say so. Kafka's number; it has no config for it.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

NOTHING: CoordinatorResult[None] = CoordinatorResult((), None)


class Sessions:
    """The deadlines of one shard's members; ``expire`` decides what a failed member means, ``find`` looks one up."""

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
        """A sign of life: the session begins anew. HOT: one clock reading and one assignment where the timer is set."""
        member.session_deadline_ms = deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        if deadline_ms < member.timer_deadline_ms:
            self._arm(group.group_id, member)

    def begin(self, group: ClassicGroup, member: Member) -> None:
        """The member was not here before, or goes by another id: it has a timer of its own from now on."""
        member.session_deadline_ms = self._monotonic_ms() + member.session_timeout_ms
        self._arm(group.group_id, member)

    def begin_join(self, group: ClassicGroup, member: Member, pending_deadline_ms: float | None) -> None:
        """A new member's first JoinGroup waits: give it its own, longer time.

        The timer of a member that came back with the id it was given, of which ``pending_deadline_ms`` is what it had, goes on.
        """
        member.session_deadline_ms = self._monotonic_ms() + NEW_MEMBER_JOIN_TIMEOUT_MS
        if pending_deadline_ms is None or pending_deadline_ms > member.session_deadline_ms:
            self._arm(group.group_id, member)
        else:
            member.timer_deadline_ms = pending_deadline_ms

    def begin_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """Somebody is given a member id to come back with, and has a session's time for it."""
        group.pending_joins[member_id] = self._monotonic_ms() + session_timeout_ms
        self._schedule(group.group_id, member_id, session_timeout_ms)

    def end(self, group: ClassicGroup, member_id: str) -> None:
        """The member is gone, or goes by another id now."""
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
