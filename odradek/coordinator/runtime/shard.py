"""What the runtime asks of a shard: the state that belongs to one partition of a coordinator's log."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, ClassVar, Protocol, runtime_checkable

from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.timing.reply import Reply


class WriteOrder(Enum):
    """In which order the records of an operation are replayed and appended: a property of the kind of shard.

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
