"""What a broker is for a partition it has a replica of: its leader, or a follower of a leader elsewhere.

A role tells the high watermark: up to where the partition is replicated, and so may be read. Flushing has a part in that where
``flush.messages`` wants records on disk first: until they are, they do not count as this replica's.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.storage.log import Log

# The leader id of a partition that has no leader.
NO_LEADER: Final = -1


class Leader:
    """This broker leads. ``in_sync`` are the log end offsets of the other in-sync replicas, by broker id, as their fetches tell.

    A cluster of one broker has no other replicas: the high watermark is what its own log has.
    """

    __slots__ = ("in_sync",)

    def __init__(self) -> None:
        self.in_sync: dict[int, int] = {}

    def high_watermark(self, log: "Log") -> int:
        """The lowest log end offset among the in-sync replicas, this broker's own among them."""
        offset = log.flush_state.readable_offset
        if self.in_sync:
            offset = min(offset, *self.in_sync.values())
        return offset


class Follower:
    """Another broker leads, or none does (NO_LEADER). Its fetch responses tell ``leader_high_watermark``."""

    __slots__ = ("leader_high_watermark", "leader_id")

    def __init__(self, leader_id: int) -> None:
        self.leader_id = leader_id
        self.leader_high_watermark = 0

    def high_watermark(self, log: "Log") -> int:
        """The leader's, as far as the log has come."""
        return min(self.leader_high_watermark, log.log_end_offset)
