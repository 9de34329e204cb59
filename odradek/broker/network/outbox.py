"""Answers held until all bytes that arrived in one turn of the event loop have been handled.

Waking a client takes longer than sending it an answer, and a client that is awake need not be woken. Sending the answers to many
clients together is cheaper for all of them and for the broker. A request that arrived alone is answered immediately, so that its
client continues while the broker does the work after the answer.

``busy_poll`` reports arrivals and the end of a turn. Without it, nothing is held.
"""

from collections.abc import Callable
from typing import Protocol

from odradek.common.logging import log


class Holder(Protocol):
    """A connection's writer that holds answers until the turn is over."""

    def send_held(self) -> None:
        """Send the held answers."""


class Outbox:
    """The connections with held answers, sent when the turn is over. Loop thread only."""

    __slots__ = ("_arrivals", "_holders", "is_holding", "last_arrivals")

    def __init__(self) -> None:
        # True if answers written now are held.
        self.is_holding = False
        # The number of arrivals in the last turn that had any.
        self.last_arrivals = 0
        self._arrivals = 0
        self._holders: list[Holder] = []

    def arrived(self) -> None:
        """Note that a client's bytes arrived. ``turn_ended`` is called before the loop polls again."""
        self._arrivals += 1
        # At a turn's first arrival the number of arrivals is unknown. The last turn's number is a good guess.
        self.is_holding = self._arrivals > 1 or self.last_arrivals > 1

    def put(self, holder: Holder) -> None:
        """Let ``holder`` send its held answers when the turn is over."""
        self._holders.append(holder)

    def turn_ended(self) -> None:
        """End the turn: its bytes have been handled."""
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
            except Exception as error:  # noqa: BLE001  any failure concerns this connection only
                log.error("cannot send an answer", error)
