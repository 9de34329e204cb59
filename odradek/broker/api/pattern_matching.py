"""Matching of names against clients' patterns. RE2 takes linear time, but pattern size times name length can be large.

A pattern of a thousand letters takes most of a second on an id of 32,767 letters. So patterns are compiled in a thread, and long
matches run there; the interpreter is free meanwhile. Requests run one after the other, each for ten seconds at most.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.patterns import InvalidPattern, compile_pattern
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.replica.inspections import Inspections
    from odradek.protocol.patterns import Pattern
    from odradek.timing.clock import Clock

T = TypeVar("T")

# Letters times the size of the pattern's program: some milliseconds.
_AT_ONCE: Final = 200_000
_MOST_MS: Final = 10_000


# In letters. Compiling a longer pattern takes tens of milliseconds.
_LONGEST_PATTERN: Final = 1024


def compiled(pattern: str, threads: Inspections, client: object = None) -> Reply[Pattern | KafkaError]:
    """Compile a pattern. KafkaError: INVALID_REGULAR_EXPRESSION; NOT_LEADER_OR_FOLLOWER if the broker stops."""

    def compile_it(_pause: Callable[[], None]) -> Pattern | KafkaError:
        try:
            return compile_pattern(pattern, _LONGEST_PATTERN)
        except InvalidPattern as error:
            return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"not a regular expression: {error}")

    reply: Reply[Pattern | KafkaError] = Reply()
    threads.run(compile_it, reply.complete, client)
    return reply


def matching(
    pattern: Pattern, items: Sequence[T], name_of: Callable[[T], str], threads: Inspections, clock: Clock, client: object = None
) -> Reply[list[T] | KafkaError]:
    """Find the ``items`` whose names match. KafkaError: REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER if the broker stops."""
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
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "matching the pattern takes too long")
        if pattern.fullmatch(name_of(item)) is not None:
            found.append(item)
    return found
