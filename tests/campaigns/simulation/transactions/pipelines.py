"""Several batches in flight to each partition, on one connection, as clients with an idempotent producer have them.

At most five are in flight to a partition. One that is refused, or whose connection is cut, is sent again once those before it are
acknowledged. Until then OUT_OF_ORDER_SEQUENCE_NUMBER is no error: a batch before it is missing. Once a batch has failed nothing
more is sent, and the step is over when nothing is in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.campaigns.simulation.transactions.connection import Connection
    from tests.campaigns.simulation.transactions.requests import Partition

_SHARE = 0.35
_MOST_IN_FLIGHT = 5
_BACKOFF_MS = 20


@dataclass(frozen=True, slots=True)
class FlightPlan:
    """How many batches a step of a transaction sends to a partition, and the share of the answers that are cut off."""

    most_batches: int
    cut_share: float


def draw_flight(seed: int) -> FlightPlan | None:
    """The plan of some histories. Drawn apart, so that those of other seeds stay what they are."""
    rng = Random(f"in flight {seed}")
    if rng.random() >= _SHARE:
        return None
    return FlightPlan(most_batches=rng.choice((2, 4, 8)), cut_share=rng.choice((0.0, 0.03, 0.15)))


class Batch:
    """One batch, and whether it was ever sent, and is now."""

    __slots__ = ("is_in_flight", "sequence", "values", "was_sent")

    def __init__(self, sequence: int, values: list[bytes]) -> None:
        self.sequence = sequence
        self.values = values
        self.was_sent = False
        self.is_in_flight = False


class Pipelines:
    """One step of a transaction: what it sends, to each of its partitions in order."""

    def __init__(
        self,
        connect: Callable[[Callable[[], None]], Connection],
        ask: Callable[[Connection, Partition, Batch, Callable[[int], None]], None],
        later: Callable[[float, Callable[[], None]], None],
        acknowledged: Callable[[Batch], None],
        is_final: Callable[[int], bool],
        done: Callable[[int], None],
    ) -> None:
        """``is_final``: an error is not to be tried again. ``done`` is called with the first such error, or 0."""
        self._connect = connect
        self._ask = ask
        self._later = later
        self._acknowledged = acknowledged
        self._is_final = is_final
        self._done = done
        self._connection: Connection | None = None
        self._left: dict[Partition, list[Batch]] = {}
        self._error = 0
        self._is_over = False

    def add(self, partition: Partition, batch: Batch) -> None:
        """Before the start."""
        self._left.setdefault(partition, []).append(batch)

    def start(self) -> None:
        """Send what may be sent."""
        for partition in self._left:
            self._send(partition)

    def _send(self, partition: Partition) -> None:
        batches = self._left[partition]
        for place, batch in enumerate(batches[:_MOST_IN_FLIGHT]):
            if self._error or (batch.was_sent and not batch.is_in_flight and place):
                break
            if not batch.is_in_flight:
                batch.was_sent = batch.is_in_flight = True
                self._send_one(partition, batch)

    def _send_one(self, partition: Partition, batch: Batch) -> None:
        if self._connection is None:
            self._connection = self._connect(self._cut)
        self._ask(self._connection, partition, batch, lambda code: self._answered(partition, batch, code))

    def _cut(self) -> None:
        self._connection = None
        for partition, batches in self._left.items():
            for batch in batches:
                if batch.is_in_flight:
                    self._failed(partition, batch, ErrorCode.NETWORK_EXCEPTION)
        self._look()

    def _answered(self, partition: Partition, batch: Batch, code: int) -> None:
        batches = self._left[partition]
        if code == ErrorCode.NONE:
            batches.remove(batch)
            self._acknowledged(batch)
            self._send(partition)
        else:
            self._failed(partition, batch, code)
        self._look()

    def _failed(self, partition: Partition, batch: Batch, code: int) -> None:
        batch.is_in_flight = False
        is_behind = code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch is not self._left[partition][0]
        if not is_behind and self._is_final(code):
            self._error = self._error or code
        self._later(_BACKOFF_MS, lambda: self._send(partition))

    def _look(self) -> None:
        """Whether the step is over."""
        is_idle = not any(batch.is_in_flight for batches in self._left.values() for batch in batches)
        if not self._is_over and is_idle and (self._error or not any(self._left.values())):
            self._is_over = True
            self._done(self._error)
