"""What a broker is for a partition it has a replica of: its leader, or a follower of a leader elsewhere.

A role tells the high watermark: up to where the partition is replicated, and so may be read. Flushing has a part in that where
``flush.messages`` wants records on disk first: until they are, they do not count as this replica's.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.replica.in_sync_replicas import InSyncReplicas
    from odradek.storage.log.log import Log

# The leader id of a partition that has no leader.
NO_LEADER: Final = -1


class Leader:
    """This broker leads. ``followers`` are the other replicas; None where there are none.

    Without followers the high watermark is what its own log has.
    """

    __slots__ = ("followers",)

    def __init__(self, followers: "InSyncReplicas | None" = None) -> None:
        self.followers = followers

    def high_watermark(self, log: "Log", high_watermark: int) -> int:
        """Up to where all in-sync replicas have the log, this broker among them; ``high_watermark`` is the present one."""
        offset = log.flush_state.readable_offset
        if self.followers is not None:
            offset = self.followers.high_watermark(offset, log.log_end_offset, high_watermark)
        return offset


class Follower:
    """Another broker leads, or none does (NO_LEADER). Its fetch responses tell ``leader_high_watermark``."""

    __slots__ = ("leader_high_watermark", "leader_id", "on_change")

    def __init__(self, leader_id: int) -> None:
        self.leader_id = leader_id
        self.leader_high_watermark = 0
        # Called when something else than before may have to be asked of the leader.
        self.on_change: Callable[[], object] | None = None

    def high_watermark(self, log: "Log", high_watermark: int) -> int:  # noqa: ARG002  as a leader's
        """The leader's, as far as the log has come."""
        return min(self.leader_high_watermark, log.log_end_offset)
