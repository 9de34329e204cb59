"""A producer's connection, with several requests in flight.

Requests arrive in the order in which they are sent. As at the broker's own connections, one begins when those before it have been
answered, or are decided and wait for their responses only, and responses leave in order. A connection that is cut brings no
answer any more; what was sent may still arrive.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.transactions.server import Server


class _Place:
    """That of a response among the others; ``give`` is set when it is there."""

    __slots__ = ("give",)

    def __init__(self) -> None:
        self.give: Callable[[], None] | None = None


class Connection:
    """One, to one process of the broker. ``on_cut`` is called once."""

    def __init__(self, server: Server | None, on_cut: Callable[[], None]) -> None:
        self.server = server
        self.is_cut = False
        # No earlier than this the next request arrives, and the next answer does.
        self.arrives_ms = 0.0
        self.answers_ms = 0.0
        self._on_cut = on_cut
        self._arrived: deque[Callable[[_Place], bool]] = deque()
        self._places: deque[_Place] = deque()
        self._undecided: _Place | None = None

    def cut(self) -> None:
        """The client notices now. Idempotent."""
        if not self.is_cut:
            self.is_cut = True
            self._on_cut()

    def arrive(self, begin: Callable[[Callable[[Any], None]], bool], give: Callable[[Any], None]) -> None:
        """A request: ``begin`` is told whom to answer, and returns whether it is decided; ``give`` sends the response."""

        def begin_in_place(place: _Place) -> bool:
            def answered(response: Any) -> None:
                place.give = lambda: give(response)
                if self._undecided is place:
                    self._undecided = None
                self._go_on()

            return begin(answered)

        self._arrived.append(begin_in_place)
        self._go_on()

    def _go_on(self) -> None:
        while self._places and self._places[0].give is not None:
            give = self._places.popleft().give
            if give is not None:
                give()
        while self._arrived and self._undecided is None:
            begin = self._arrived.popleft()
            place = self._undecided = _Place()
            self._places.append(place)
            if begin(place) and self._undecided is place:
                self._undecided = None
