"""What the runtime asks of a shard: the state that belongs to one partition of a coordinator's log."""

from typing import Protocol

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
