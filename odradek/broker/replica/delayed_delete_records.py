"""A DeleteRecords whose followers have not moved their log start offsets yet.

Until they have, one of them could lead, and have the deleted records again.
"""

from collections.abc import Callable

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.timing.purgatory import DelayedOperation


class DelayedDeleteRecords(DelayedOperation):
    """Completes when all replicas that live begin at the offset that was asked for, or at the deadline.

    ``waiting`` holds (partition, offset); ``respond`` is called with (low watermark, error code) of each. One that another broker
    leads now has NOT_LEADER_OR_FOLLOWER, one whose followers were too slow REQUEST_TIMED_OUT.
    """

    __slots__ = ("_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], respond: Callable[[list[tuple[int, ErrorCode]]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._waiting = waiting
        self._respond = respond

    def try_complete(self) -> bool:
        """Part of the purgatory's interface."""
        if any(partition.leader is not None and _is_to_come(partition, offset) for partition, offset in self._waiting):
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Part of the purgatory's interface."""
        self._respond([_outcome(partition, offset) for partition, offset in self._waiting])


def _is_to_come(partition: Partition, offset: int) -> bool:
    low_watermark = partition.low_watermark
    return low_watermark is not None and low_watermark < offset


def _outcome(partition: Partition, offset: int) -> tuple[int, ErrorCode]:
    low_watermark = partition.low_watermark
    if low_watermark is None:
        return -1, ErrorCode.KAFKA_STORAGE_ERROR
    if partition.leader is None:
        return -1, ErrorCode.NOT_LEADER_OR_FOLLOWER
    return low_watermark, ErrorCode.REQUEST_TIMED_OUT if low_watermark < offset else ErrorCode.NONE
