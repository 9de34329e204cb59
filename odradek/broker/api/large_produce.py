"""A Produce request of many partitions, handled in pieces: for some milliseconds in each turn of the loop.

A piece is a request of a few partitions. Pieces keep their order: each begins when the one before it is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, Signal
from odradek.common.logging import log
from odradek.protocol.message_types.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.produce_request import ProduceRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from odradek.broker.api.services import ProduceServices
    from odradek.protocol.produce_request import ProduceTopic

    Outcome: TypeAlias = ProduceResponse | Signal

_PIECE_PARTITIONS: Final = 16
_SLICE_MS: Final = 5


class LargeProduce:
    """One large Produce. ``append`` handles a piece. Call ``start`` once; ``reply`` completes with the response."""

    def __init__(
        self, services: ProduceServices, request: ProduceRequest, append: Callable[[ProduceRequest], Outcome | Reply[Outcome]]
    ) -> None:
        self.reply: Reply[Outcome] = Reply()
        self._services = services
        self._request = request
        self._append = append
        self._pieces = _pieces(request)
        self._is_kept = False
        # The outcomes of the pieces, in order, and the number of outcomes that are still missing.
        self._outcomes: list[Outcome | None] = []
        self._waiting = 0
        self._is_begun = False

    def start(self) -> Reply[Outcome]:
        """Begin, in this turn of the loop."""
        self._go_on()
        return self.reply

    def _go_on(self) -> None:
        clock = self._services.clock
        until_ms = clock.monotonic_ms() + _SLICE_MS
        try:
            # ``_keep`` replaces ``_pieces``, so this is not a for loop.
            while (topic := next(self._pieces, None)) is not None:
                request = self._request
                outcome = self._append(ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, [topic]))
                if not self._note(outcome):
                    return
                if clock.monotonic_ms() >= until_ms:
                    self._keep()
                    self._services.call_soon(self._go_on)
                    return
        except Exception as error:  # noqa: BLE001  not all partitions can be answered; logged in full
            log.error("cannot answer a produce of many partitions", error)
            self.reply.complete(CLOSE_CONNECTION)
            return
        self._is_begun = True
        self._finish()

    def _note(self, outcome: Outcome | Reply[Outcome]) -> bool:
        """Record the outcome of a piece. Return whether the next piece may begin."""
        place = len(self._outcomes)
        if not isinstance(outcome, Reply):
            self._outcomes.append(outcome)
            return True
        if outcome.done:
            self._outcomes.append(outcome.response)
            return True
        is_decided = outcome.is_decided
        self._outcomes.append(None)
        self._waiting += 1
        self._keep()

        def done(response: Outcome) -> None:
            self._outcomes[place] = response
            self._waiting -= 1
            if is_decided:
                self._finish()
            else:
                self._services.call_soon(self._go_on)

        outcome.when_done(done)
        return is_decided

    def _keep(self) -> None:
        """Copy the remaining pieces out of the frame, which is freed when the call that brought the request returns."""
        if not self._is_kept:
            self._is_kept = True
            left = [
                (topic, [(index, None if records is None else bytes(records)) for index, records in batches])
                for topic, batches in self._pieces
            ]
            self._pieces = iter(left)

    def _finish(self) -> None:
        """Complete the response, if all pieces have an outcome."""
        if self._waiting or not self._is_begun:
            return
        if self._request.acks == 0:
            self.reply.complete(CLOSE_CONNECTION if CLOSE_CONNECTION in self._outcomes else NO_RESPONSE)
            return
        topics: list[TopicProduceResponse] = []
        partitions: list[PartitionProduceResponse] = []
        for outcome in self._outcomes:
            if not isinstance(outcome, ProduceResponse):
                self.reply.complete(CLOSE_CONNECTION)
                return
            (topic,) = outcome.responses
            last = topics[-1] if topics else None
            if last is not None and (last.name, last.topic_id) == (topic.name, topic.topic_id):
                partitions += topic.partition_responses
            else:
                partitions = list(topic.partition_responses)
                topics.append(topic._replace(partition_responses=partitions))
        self.reply.complete(ProduceResponse(responses=topics))


def _pieces(request: ProduceRequest) -> Iterator[ProduceTopic]:
    """Yield the request's topics. A topic with many partitions is split into several pieces."""
    for topic, batches in request.topics:
        for start in range(0, max(len(batches), 1), _PIECE_PARTITIONS):
            yield topic, batches[start : start + _PIECE_PARTITIONS]
