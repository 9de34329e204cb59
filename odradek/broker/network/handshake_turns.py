"""TLS handshakes in turns: a few steps per turn of the event loop, so that other clients are served in between.

A step is a signature and a key exchange, a third of a millisecond in OpenSSL. A thousand clients at once would hold up the others
for a third of a second. Begun handshakes go before new ones. A handshake under way takes some 50 KiB, so their number is limited.
Beyond the limit the oldest one ends, since it most likely waits for a client that will not answer.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS_A_TURN: Final = 4
MOST_UNDER_WAY: Final = 1_000


class Handshaker(Protocol):
    """The server's side of one handshake."""

    def take_step(self) -> None:
        """Continue the handshake with the received bytes."""

    def give_way(self) -> None:
        """End the handshake to make room for others."""


class HandshakeTurns:
    """The handshakes of one server. Loop thread only. ``call_soon`` calls back in the loop's next turn."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        # The handshakes that have begun, the oldest first.
        self._under_way: dict[Handshaker, None] = {}
        self._going_on: deque[Handshaker] = deque()
        self._new: deque[Handshaker] = deque()
        # True if this turn's steps were taken. The next ones come in the loop's next turn.
        self._is_due = False

    def ask(self, handshaker: Handshaker) -> None:
        """Let ``handshaker`` take its next step: now, or in its turn."""
        (self._going_on if handshaker in self._under_way else self._new).append(handshaker)
        if not self._is_due:
            self._take_steps()

    def over(self, handshaker: Handshaker) -> None:
        """Note that the handshake is done or has failed. A step that it asked for may still be called."""
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
