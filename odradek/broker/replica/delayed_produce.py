"""A Produce whose batches are not acknowledged yet: they are still to be replicated, or flushed."""

from collections.abc import Callable

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

    def try_complete(self) -> bool:
        """Part of the purgatory's interface."""
        for partition, last_offset in self._waiting:
            log = partition.log
            if log is None or partition.leader is None or log.has_lost_sync:
                continue
            if not partition.is_acknowledged(last_offset, self._acks):
                return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Part of the purgatory's interface."""
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
