"""From the metadata log to the image: all of it at a start, and batch by batch where another node writes the log.

Records between a BeginTransactionRecord and an EndTransactionRecord, which Kafka's controller writes around what must not be seen
in part, take effect at the end; an AbortTransactionRecord drops them (KIP-868). A transaction that is open where the log ends
belongs to a controller that has stopped: whoever appends next aborts it, as Kafka's next active controller does.
"""

from collections.abc import Callable, Iterable

from odradek.broker.metadata.delta import MetadataDelta
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.metadata_log import MetadataBatch, MetadataUnreadable
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records import MetadataRecord, kind_of

_BEGIN, _END, _ABORT = 23, 24, 25


class MetadataLoader:
    """Replays batches into ``image``."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._delta = MetadataDelta()
        self._open: list[MetadataRecord] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Whether a metadata transaction is open."""
        return self._open is not None

    def load(self, batches: Iterable[MetadataBatch], path_at: Callable[[int], str]) -> None:
        """Replay all of ``batches``; ``path_at`` tells the file of an offset. Raises MetadataUnreadable."""
        for batch in batches:
            self.replay(batch, path_at)

    def replay(self, batch: MetadataBatch, path_at: Callable[[int], str]) -> None:
        """Replay one batch. Raises MetadataUnreadable."""
        for offset, record in enumerate(batch.records, batch.base_offset):
            try:
                self._take(record)
            except MalformedMessage as error:
                raise MetadataUnreadable(path_at(offset), offset, error) from error

    def take_delta(self) -> MetadataDelta:
        """What has changed since the last call."""
        delta, self._delta = self._delta, MetadataDelta()
        return delta

    def begin_anew(self) -> None:
        """Forget an open transaction: a snapshot has replaced the image."""
        self._open = None

    def _take(self, record: MetadataRecord) -> None:
        kind = kind_of(record)
        if kind == _BEGIN:
            if self._open is not None:
                raise MalformedMessage("a metadata transaction begins within another")
            self._open = []
        elif kind in (_END, _ABORT):
            if self._open is None:
                raise MalformedMessage("a metadata transaction ends that has not begun")
            records, self._open = self._open, None
            if kind == _END:
                self._image.replay(records, self._delta)
        elif self._open is not None:
            self._open.append(record)
        else:
            self._image.replay((record,), self._delta)
