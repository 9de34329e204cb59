"""Which names match a pattern of a client: RE2 takes linear time, and a product of two lengths is long.

An id of 32,767 letters and a pattern of a thousand take most of a second. So matches that may take long are made in a thread, of
which the interpreter is free meanwhile, one request's after the other's, and for ten seconds at most.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.replica.inspections import Inspections
    from odradek.coordinator.transaction.describe import Pattern
    from odradek.timing.clock import Clock

T = TypeVar("T")

# Letters by the size of the pattern's program: some milliseconds.
_AT_ONCE: Final = 200_000
_MOST_MS: Final = 10_000


def matching(
    pattern: Pattern, items: Sequence[T], name_of: Callable[[T], str], threads: Inspections, clock: Clock, client: object = None
) -> Reply[list[T] | KafkaError]:
    """Those of ``items`` whose name matches. KafkaError: REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER where the broker stops."""
    reply: Reply[list[T] | KafkaError] = Reply()
    if pattern.programsize * sum(len(name_of(item)) for item in items) <= _AT_ONCE:
        reply.complete([item for item in items if pattern.fullmatch(name_of(item)) is not None])
    else:
        threads.run(partial(_match, pattern, items, name_of, clock), reply.complete, client)
    return reply


def _match(pattern: Pattern, items: Sequence[T], name_of: Callable[[T], str], clock: Clock, pause: Callable[[], None]) -> list[T]:
    until_ms = clock.monotonic_ms() + _MOST_MS
    found = []
    for item in items:
        pause()
        if clock.monotonic_ms() >= until_ms:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the pattern takes too long")
        if pattern.fullmatch(name_of(item)) is not None:
            found.append(item)
    return found
