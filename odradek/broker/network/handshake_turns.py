"""Handshakes in turns: so many steps of them in one turn of the event loop, so that all other clients are served in between.

A step is a signature and a key exchange, which take OpenSSL a third of a millisecond: a thousand clients that come at once would
hold up the others for that third of a second. A handshake that has begun goes before one that has not. One under way takes some
50 KiB, so there is a limit to them: beyond it the oldest gives way, which most likely waits for a client that will not answer.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS_A_TURN: Final = 4
MOST_UNDER_WAY: Final = 1_000


class Handshaker(Protocol):
    """One end of a handshake."""

    def take_step(self) -> None:
        """Go on with what has come."""

    def give_way(self) -> None:
        """End the handshake, for others' sake."""


class HandshakeTurns:
    """The handshakes of one server. Loop thread only. ``call_soon`` calls back in the loop's next turn."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        # Those whose first step was taken, the oldest first.
        self._under_way: dict[Handshaker, None] = {}
        self._going_on: deque[Handshaker] = deque()
        self._new: deque[Handshaker] = deque()
        # Whether this turn's steps were taken: the next ones are due in the loop's next turn.
        self._is_due = False

    def ask(self, handshaker: Handshaker) -> None:
        """Have ``handshaker`` take its next step: now, or in its turn."""
        (self._going_on if handshaker in self._under_way else self._new).append(handshaker)
        if not self._is_due:
            self._take_steps()

    def over(self, handshaker: Handshaker) -> None:
        """The handshake is done, or has failed. It may still be called to a step that it has asked for."""
        self._under_way.pop(handshaker, None)

    def _take_turn(self) -> None:
        self._is_due = False
        if self._going_on or self._new:
            self._take_steps()

    def _take_steps(self) -> None:
        self._is_due = True
        self._call_soon(self._take_turn)
        for _ in range(STEPS_A_TURN):
            if self._going_on:
                self._going_on.popleft().take_step()
            elif self._new:
                self._begin(self._new.popleft())
            else:
                break

    def _begin(self, handshaker: Handshaker) -> None:
        if len(self._under_way) >= MOST_UNDER_WAY:
            next(iter(self._under_way)).give_way()
        self._under_way[handshaker] = None
        handshaker.take_step()
