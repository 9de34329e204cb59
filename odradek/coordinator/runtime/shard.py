"""What the runtime asks of a shard: the state that belongs to one partition of a coordinator's log."""

from typing import Protocol, runtime_checkable

from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.coordinator.runtime.record import CoordinatorRecord


class Shard(Protocol):
    """Decides in operations, which the runtime is handed as callables and whose ``Result``s it appends.

    Only ``replay`` changes persistent state, and it keeps it in the timelines of ``runtime.timeline``. One shard object lives
    from a load to the next unload. Loop thread only.
    """

    def replay(self, record: CoordinatorRecord, offset: int) -> None:
        """Apply one record: while loading, and again for each that an operation decided on, before it is appended."""

    def on_loaded(self, now_ms: int) -> None:
        """The log has been replayed; operations follow. Deadlines may be set here. ``now_ms``: wall time."""

    def on_unloaded(self) -> None:
        """The shard is let go: who still waits in it is answered NOT_COORDINATOR here. Its deadlines are dropped already."""


@runtime_checkable
class TransactionalShard(Shard, Protocol):
    """A shard whose state changes with transactions, too: as part of one, and when it ends."""

    def replay_in_transaction(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Take note of a record that counts if its producer's transaction is committed."""

    def replay_marker(self, marker: EndTxnMarker) -> None:
        """Let the records of a producer's transaction count, or vanish."""
