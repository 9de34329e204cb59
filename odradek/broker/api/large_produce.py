"""Produce requests that take long: requests of many partitions, and batches that take long to open.

``LargeProduce`` handles a request of many partitions in pieces, for some milliseconds in each turn of the loop. A piece is a
request of a few partitions. Pieces keep their order: each begins when the one before it is decided.

``LateBatches`` are opened beside the event loop; their results keep their places in the response.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.common.context import CLOSE_CONNECTION, NO_RESPONSE, Reply, Signal
from odradek.common.logging import log
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.produce_request import ProduceRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from odradek.broker.api.services import ProduceServices
    from odradek.broker.replica.inspections import Inspections
    from odradek.common.context import Session
    from odradek.protocol.produce_request import ProduceTopic
    from odradek.protocol.record_batch import Buffer
    from odradek.storage.log.inspection import LongInspection

    Outcome: TypeAlias = ProduceResponse | Signal


class LateBatch:
    """A batch that takes long. It reserves the next place in ``results``, the results of its topic."""

    __slots__ = ("_place", "_results", "index", "inspection", "topic")

    def __init__(
        self, results: list[PartitionProduceResponse], topic: str | bytes, index: int, inspection: LongInspection
    ) -> None:
        self._results = results
        self._place = len(results)
        self.topic = topic
        self.index = index
        self.inspection = inspection

    def put(self, result: PartitionProduceResponse) -> None:
        """Set the result of its partition in the response."""
        self._results[self._place] = result


class LateBatches:
    """All late batches of one request. After the callback, each is in ``opened``, with its records, or in ``refused``."""

    def __init__(self, batches: list[LateBatch]) -> None:
        self._batches = batches
        self._left = len(batches)
        self.opened: list[tuple[LateBatch, Buffer]] = []
        self.refused: list[tuple[LateBatch, KafkaError]] = []

    def open(self, inspections: Inspections, client: Session, then: Callable[[LateBatches], None]) -> None:
        """Open the batches in order, when it is the turn of ``client``. Then call ``then`` with this object."""

        def note(batch: LateBatch, outcome: Buffer | KafkaError) -> None:
            if isinstance(outcome, KafkaError):
                self.refused.append((batch, outcome))
            else:
                self.opened.append((batch, outcome))
            self._left -= 1
            if not self._left:
                then(self)

        for batch in self._batches:
            inspections.run(batch.inspection.run, partial(note, batch), client)

    def topics(self) -> list[ProduceTopic]:
        """Return the opened batches as topics of a Produce request, one topic per batch."""
        return [(batch.topic, ((batch.index, _bytes(records)),)) for batch, records in self.opened]


def _bytes(records: Buffer) -> bytes | memoryview:
    return bytes(records) if isinstance(records, bytearray) else records


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
