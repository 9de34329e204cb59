"""A broker's role for a partition it has a replica of: leader, or follower of a leader elsewhere.

A role computes the high watermark: the offset up to which the partition is replicated, and so may be read. If ``flush.messages``
requires a flush first, records count as this replica's only after they are on disk.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.replica.in_sync_replicas import InSyncReplicas
    from odradek.storage.log.log import Log

# The leader id of a partition that has no leader.
NO_LEADER: Final = -1


class Leader:
    """The role of the leader. ``followers`` are the other replicas; None if there are none.

    Without followers the high watermark is the end of the leader's own readable log.
    """

    __slots__ = ("followers",)

    def __init__(self, followers: "InSyncReplicas | None" = None) -> None:
        self.followers = followers

    def high_watermark(self, log: "Log", high_watermark: int) -> int:
        """Return the offset up to which all in-sync replicas have the log. ``high_watermark`` is the current one."""
        offset = log.flush_state.readable_offset
        if self.followers is not None:
            offset = self.followers.high_watermark(offset, log.log_end_offset, high_watermark)
        return offset


class Follower:
    """The role of a follower. There may be no leader (NO_LEADER). Fetch responses set ``leader_high_watermark``."""

    __slots__ = ("leader_high_watermark", "leader_id", "on_change")

    def __init__(self, leader_id: int) -> None:
        self.leader_id = leader_id
        self.leader_high_watermark = 0
        # Called when the next fetch from the leader may have to ask for something else.
        self.on_change: Callable[[], object] | None = None

    def high_watermark(self, log: "Log", high_watermark: int) -> int:  # noqa: ARG002  the signature of Leader's
        """Return the leader's high watermark, or this log's end if that is lower."""
        return min(self.leader_high_watermark, log.log_end_offset)
