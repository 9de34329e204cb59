"""Answers that are held until all that came in with one turn of the event loop has been handled.

Waking a client takes longer than sending it an answer, and a client that is awake need not be woken. Answers for many clients
cost all of them, and the broker, less if they are sent together. A request that came alone is answered immediately, so that its
client goes on while the broker does what follows from the answer.

``busy_poll`` tells of arrivals and of the turn's end; without it, nothing is held.
"""

from collections.abc import Callable
from typing import Protocol

from odradek.common.logging import log


class Holder(Protocol):
    """Who holds answers until the turn is over."""

    def send_held(self) -> None:
        """Send them."""


class Outbox:
    """The connections with answers to be sent when the turn is over. Loop thread only."""

    __slots__ = ("_arrivals", "_holders", "is_holding", "last_arrivals")

    def __init__(self) -> None:
        # Whether what is written now is to be put here.
        self.is_holding = False
        # How often bytes came in the last turn that had any.
        self.last_arrivals = 0
        self._arrivals = 0
        self._holders: list[Holder] = []

    def arrived(self) -> None:
        """Bytes of a client have come; ``turn_ended`` will be called before the loop looks for others."""
        self._arrivals += 1
        # Whether the first of a turn comes alone is not known; the number of the last turn is a good guess.
        self.is_holding = self._arrivals > 1 or self.last_arrivals > 1

    def put(self, holder: Holder) -> None:
        """Have ``holder`` send what it holds when the turn is over."""
        self._holders.append(holder)

    def turn_ended(self) -> None:
        """The bytes that came in with this turn have been handled."""
        self.last_arrivals = self._arrivals
        self._arrivals = 0
        self._send()

    def run(self, callback: Callable[[], None]) -> None:
        """Call ``callback``, which completes requests of the last turn, and send their answers together."""
        self.is_holding = self.last_arrivals > 1
        try:
            callback()
        finally:
            self._send()

    def _send(self) -> None:
        self.is_holding = False
        holders, self._holders = self._holders, []
        for holder in holders:
            try:
                holder.send_held()
            except Exception as error:  # noqa: BLE001  whatever it is, it is this connection's trouble and nobody else's
                log.error("an answer could not be sent", error)
