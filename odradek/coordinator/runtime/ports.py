"""The ports of the runtime: the topic's partitions as logs, a place in the event loop, and the shard."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from odradek.coordinator.runtime.result import CoordinatorRecord, EndTxnMarker
from odradek.timing.reply import Reply


class CoordinatorLog(Protocol):
    """One partition's log. Offsets are record offsets. Only the runtime appends to the log."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record will have."""

    @property
    def high_watermark(self) -> int:
        """The offset below which records are committed. Raises KafkaError if it can never reach the log's end."""

    @property
    def max_batch_bytes(self) -> int:
        """The largest batch that can be appended."""

    def append(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        """Append (key, value) records as one batch, all or nothing. Return the next offset. Raises KafkaError.

        With a ``producer``, an id and epoch, the records belong to its transaction. An error may leave records in the log;
        ``log_end_offset`` shows that.
        """

    def append_marker(self, marker: EndTxnMarker, now_ms: int) -> int:
        """End a transaction. Return the offset after the marker. Raises KafkaError."""

    def left_open(self, producer_id: int, oldest_epoch: int) -> EndTxnMarker | None:
        """Return the marker that aborts the producer's open transaction, if its epoch is below ``oldest_epoch``.

        The transaction's own marker is lost. Append the returned marker before any record of a later transaction. Returns None if
        nothing can be appended.
        """

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches, starting with the one that contains ``offset``.

        At most ``max_bytes``, which may cut the last batch, but at least one whole batch. Empty if no batch is left. Raises
        KafkaError.
        """


class CoordinatorLogs(Protocol):
    """The topic behind a coordinator."""

    @property
    def partition_count(self) -> int:
        """The number of the topic's partitions. Creates a missing topic. Raises KafkaError if that fails."""

    def open(self, partition: int) -> CoordinatorLog:
        """Open the log of a partition that is led here. Raises KafkaError if it is not."""

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        """Call back when the partition's high watermark moves, even within an append, or never can again. None unsubscribes."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when this turn of the event loop ends, before the loop looks for new requests."""


class WriteOrder(Enum):
    """The order in which an operation's records are replayed and appended. Each kind of shard has its own.

    REPLAY_THEN_APPEND: records are replayed when they are decided. When the turn of the event loop ends, all its records are
    appended as one batch. So each operation decides on the state left by the previous one. If the append fails, the timelines
    roll back to the start of the batch. For many small operations on one shard.

    APPEND_THEN_REPLAY: each operation's records are appended as a batch of their own before the call returns, and then replayed.
    If the append fails, nothing has been replayed. If the high watermark follows immediately, the timelines keep no earlier
    values. For operations whose clients wait for each one.

    Transactional writes are always appended first, then replayed: records of a producer, which need a batch with its id and
    epoch, and markers. The open batch is appended before them.
    """

    REPLAY_THEN_APPEND = "replay, then append"
    APPEND_THEN_REPLAY = "append, then replay"


class CoordinatorShard(Protocol):
    """Decides in operations: callables given to the runtime, which replays and appends their ``CoordinatorResult``.

    Only ``replay`` changes persistent state, which is kept in the timelines of ``runtime.timeline``. One shard object lives from
    a load to the next unload. ``write_order`` is the same for all shards of a class. Loop thread only.
    """

    write_order: ClassVar[WriteOrder]

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """Apply one record, while loading or after an operation decided on it (see ``write_order``)."""

    def on_loaded(self, now_ms: int) -> None:
        """Note that the log has been replayed and operations follow. May set deadlines. ``now_ms`` is wall time."""

    def on_unloaded(self) -> Iterable[tuple[Reply[Any], object]]:
        """Let go of the shard; its deadlines are dropped. Return the replies it still holds, with their responses."""


@runtime_checkable
class TransactionalShard(CoordinatorShard, Protocol):
    """A shard whose records may be part of a transaction, and take effect when it is committed."""

    def replay_in_transaction(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Note a record that takes effect when its producer's transaction is committed."""

    def replay_marker(self, marker: EndTxnMarker) -> None:
        """Apply or drop the records of a producer's transaction."""
