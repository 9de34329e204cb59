"""A Produce whose batches the high watermark does not cover yet: they are still to be flushed."""

from collections.abc import Callable
from typing import Any

from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.timing.purgatory import DelayedOperation


class DelayedProduce(DelayedOperation):
    """Completes when every partition's high watermark has passed its batch; what has not by the deadline timed out.

    ``waiting`` holds (partition, last offset of the batch, its part of the response). A partition that goes offline meanwhile, or
    whose log cannot be synced, is answered with KAFKA_STORAGE_ERROR.
    """

    __slots__ = ("_respond", "_waiting")

    def __init__(self, deadline_ms: float, waiting: list[tuple[Partition, int, Any]], respond: Callable[[], None]) -> None:
        super().__init__(deadline_ms)
        self._waiting = waiting
        self._respond = respond

    def try_complete(self) -> bool:
        """Part of the purgatory's interface."""
        for partition, last_offset, _ in self._waiting:
            log = partition.log
            if log is not None and partition.high_watermark <= last_offset and not log.has_lost_sync:
                return False
        return self.force_complete()

    def on_complete(self) -> None:
        """Part of the purgatory's interface."""
        for partition, last_offset, result in self._waiting:
            log = partition.log
            if log is None:
                result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            elif partition.high_watermark <= last_offset:
                result.error_code = ErrorCode.KAFKA_STORAGE_ERROR if log.has_lost_sync else ErrorCode.REQUEST_TIMED_OUT
        self._respond()
