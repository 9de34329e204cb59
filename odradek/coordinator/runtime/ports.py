"""The ports of the runtime: the topic's partitions as logs, a place in the event loop, and the shard."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.timing.reply import Reply


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


class WriteOrder(Enum):
    """The order in which an operation's records are replayed and appended. Each kind of shard has its own.

    REPLAY_THEN_APPEND: records are replayed when they are decided, and appended together with those of the other operations of
    the same turn of the event loop, as one batch, when the turn ends. The next operation decides on what the one before it
    decided. If the append fails, the timelines roll back to where the batch began. For many small operations on one shard.

    APPEND_THEN_REPLAY: the records of each operation are appended before the call returns, as a batch of their own, and then
    replayed. If the append fails, nothing has been replayed. Where the high watermark follows immediately, the timelines keep no
    earlier values. For operations whose clients wait for each of them.

    Whatever the kind of shard, what belongs to a transaction is appended, then replayed: records under a producer, which need a
    batch with its id and epoch, and markers. The open batch is appended before them.
    """

    REPLAY_THEN_APPEND = "replay, then append"
    APPEND_THEN_REPLAY = "append, then replay"


class CoordinatorShard(Protocol):
    """Decides in operations: callables that the runtime is handed, and whose ``CoordinatorResult``s it replays and appends.

    Only ``replay`` changes persistent state, which is kept in the timelines of ``runtime.timeline``. One shard object lives from
    a load to the next unload. ``write_order`` is the same for all shards of a class. Loop thread only.
    """

    write_order: ClassVar[WriteOrder]

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """Apply one record: while loading, and when an operation has decided on it, in the order that ``write_order`` says."""

    def on_loaded(self, now_ms: int) -> None:
        """The log has been replayed; operations follow. Deadlines may be set here. ``now_ms``: wall time."""

    def on_unloaded(self) -> Iterable[tuple[Reply[Any], object]]:
        """The shard is let go, its deadlines are dropped. Returns the replies that it still holds, with their responses."""


@runtime_checkable
class TransactionalShard(CoordinatorShard, Protocol):
    """A shard whose state changes with transactions, too: as part of one, and when it ends."""

    def replay_in_transaction(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Take note of a record that counts if its producer's transaction is committed."""

    def replay_marker(self, marker: EndTxnMarker) -> None:
        """Let the records of a producer's transaction count, or vanish."""
