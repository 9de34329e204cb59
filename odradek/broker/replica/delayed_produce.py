"""A Produce whose batches the high watermark does not cover yet: they are still to be flushed."""

from collections.abc import Callable

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.timing.purgatory import DelayedOperation


class DelayedProduce(DelayedOperation):
    """Completes when every partition's high watermark has passed its batch; what has not by the deadline timed out.

    ``waiting`` holds (partition, last offset of the batch); ``respond`` is called with the error code of each. A partition that
    goes offline meanwhile, or whose log cannot be synced, has KAFKA_STORAGE_ERROR.
    """

    __slots__ = ("_respond", "_waiting")

    def __init__(
        self, deadline_ms: float, waiting: list[tuple[Partition, int]], respond: Callable[[list[ErrorCode]], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._waiting = waiting
        self._respond = respond

    def try_complete(self) -> bool:
        """Part of the purgatory's interface."""
        for partition, last_offset in self._waiting:
            log = partition.log
            if log is not None and partition.high_watermark <= last_offset and not log.has_lost_sync:
                return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Part of the purgatory's interface."""
        self._respond([_error(partition, last_offset) for partition, last_offset in self._waiting])


def _error(partition: Partition, last_offset: int) -> ErrorCode:
    log = partition.log
    if log is None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.high_watermark <= last_offset:
        return ErrorCode.KAFKA_STORAGE_ERROR if log.has_lost_sync else ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE
