"""Batches of a Produce request that take long to open. They are opened beside the event loop; results keep their places."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.replica.inspections import Inspections
    from odradek.common.context import Session
    from odradek.protocol.message_types.produce import PartitionProduceResponse
    from odradek.protocol.produce_request import ProduceTopic
    from odradek.protocol.record_batch import Buffer
    from odradek.storage.log.inspection import LongInspection


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
