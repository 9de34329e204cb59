"""Requests that wait for followers: a Produce until its batches are there, or flushed; a DeleteRecords until logs start later.

Until a follower has moved its log start offset, it could lead, and have the deleted records again.
"""

from collections.abc import Callable

from typing_extensions import override

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.timing.purgatory import DelayedOperation


class DelayedProduce(DelayedOperation):
    """Completes when every batch is as safe as ``acks`` ask for; those that are not by the deadline have timed out.

    ``waiting`` holds (partition, last offset of the batch); ``respond`` is called with the error code of each. A partition that
    goes offline meanwhile, or whose log cannot be synced, has KAFKA_STORAGE_ERROR; one that another broker leads now has
    NOT_LEADER_OR_FOLLOWER. One that is replicated, but on fewer than ``min.insync.replicas`` by now, has
    NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    """

    __slots__ = ("_acks", "_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], acks: int, respond: Callable[[list[ErrorCode]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._acks = acks
        self._waiting = waiting
        self._respond = respond

    @override
    def try_complete(self) -> bool:
        for partition, last_offset in self._waiting:
            log = partition.log
            if log is None or partition.leader is None or log.has_lost_sync:
                continue
            if not partition.is_acknowledged(last_offset, self._acks):
                return False
        return self.force_complete()

    @override
    def on_complete(self) -> None:
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

    @override
    def try_complete(self) -> bool:
        if any(partition.leader is not None and _is_to_come(partition, offset) for partition, offset in self._waiting):
            return False
        return self.force_complete()

    @override
    def on_complete(self) -> None:
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
