"""What the runtime asks of the broker: the partitions of its topic as logs, and a place in the event loop."""

from collections.abc import Callable, Sequence
from typing import Protocol

from odradek.coordinator.runtime.marker import EndTxnMarker


class CoordinatorLog(Protocol):
    """One partition's log. Offsets are those of records; nothing but the runtime appends to it."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will have."""

    @property
    def high_watermark(self) -> int:
        """Records below this offset are committed. Raises KafkaError where it can never reach the log's end."""

    @property
    def max_batch_bytes(self) -> int:
        """The largest batch that can be appended."""

    def append(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        """Append (key, value) records as one batch, all or nothing; the offset behind the last. Raises KafkaError.

        With a ``producer``, its id and epoch, they are part of its transaction. Where an error leaves records in the log all the
        same, ``log_end_offset`` tells.
        """

    def append_marker(self, marker: EndTxnMarker, now_ms: int) -> int:
        """End a transaction; the offset behind the marker. Raises KafkaError."""

    def left_open(self, producer_id: int, oldest_epoch: int) -> EndTxnMarker | None:
        """The marker that aborts the producer's open transaction, if that is of an epoch before ``oldest_epoch``.

        Its own marker is lost. This one has to be appended before anything of a later transaction is. None where nothing can be
        appended.
        """

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from the one with ``offset`` on: at most ``max_bytes``, which may cut the last, but one whole batch at least.

        Nothing where no batch is left from there on. Raises KafkaError.
        """


class CoordinatorLogs(Protocol):
    """The topic behind a coordinator."""

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has. It is created if it is not there. Raises KafkaError where it cannot be."""

    def open(self, partition: int) -> CoordinatorLog:
        """The log of a partition that is led here. Raises KafkaError where it is not."""

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        """Call back whenever the partition's high watermark has moved, within an append too, or never will; None: no longer."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when this turn of the event loop ends, before the loop looks for new requests."""
