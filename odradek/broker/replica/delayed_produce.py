"""Delayed requests that wait for followers: Produce and DeleteRecords.

A Produce waits until its batches are replicated, or flushed. A DeleteRecords waits until all replicas have moved their log start
offsets: a follower that has not could become leader and serve the deleted records again.
"""

from collections.abc import Callable

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.timing.purgatory import DelayedOperation


class DelayedProduce(DelayedOperation):
    """A Produce that completes when every batch is as safe as ``acks`` ask for, or at the deadline.

    ``waiting`` holds (partition, last offset of the batch). ``respond`` is called with the error code of each:

    - REQUEST_TIMED_OUT: the batch was not safe by the deadline.
    - KAFKA_STORAGE_ERROR: the partition went offline meanwhile, or its log cannot be synced.
    - NOT_LEADER_OR_FOLLOWER: another broker leads now.
    - NOT_ENOUGH_REPLICAS_AFTER_APPEND: replicated, but on fewer than ``min.insync.replicas`` by now.
    """

    __slots__ = ("_acks", "_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], acks: int, respond: Callable[[list[ErrorCode]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._acks = acks
        self._waiting = waiting
        self._respond = respond

    def try_complete(self) -> bool:
        """See DelayedOperation."""
        for partition, last_offset in self._waiting:
            log = partition.log
            if log is None or partition.leader is None or log.has_lost_sync:
                continue
            if not partition.is_acknowledged(last_offset, self._acks):
                return False
        return self.force_complete()

    def on_complete(self) -> None:
        """See DelayedOperation."""
        self._respond([_error(partition, last_offset, self._acks) for partition, last_offset in self._waiting])


def _error(partition: Partition, last_offset: int, acks: int) -> ErrorCode:
    log = partition.log
    if log is None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.leader is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not partition.is_acknowledged(last_offset, acks):
        return ErrorCode.KAFKA_STORAGE_ERROR if log.has_lost_sync else ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE if partition.has_enough_replicas(acks) else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class DelayedDeleteRecords(DelayedOperation):
    """A DeleteRecords that completes when all live replicas start at the requested offset, or at the deadline.

    ``waiting`` holds (partition, offset). ``respond`` is called with (low watermark, error code) of each: NOT_LEADER_OR_FOLLOWER
    if another broker leads now, REQUEST_TIMED_OUT if followers were too slow, KAFKA_STORAGE_ERROR if the partition is offline.
    """

    __slots__ = ("_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], respond: Callable[[list[tuple[int, ErrorCode]]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._waiting = waiting
        self._respond = respond

    def try_complete(self) -> bool:
        """See DelayedOperation."""
        if any(partition.leader is not None and _is_to_come(partition, offset) for partition, offset in self._waiting):
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        """See DelayedOperation."""
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
