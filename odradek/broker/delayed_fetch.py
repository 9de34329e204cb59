"""Reading for a Fetch: what there is now, and the wait for more.

``FetchRead`` holds the partitions of one request and reads them; ``DelayedFetch`` tries it again whenever something happened on
one of them, until ``min_bytes`` are there or ``max_wait`` is over. Reading means finding the slices of the log files: no byte of
a record is touched before it goes to the socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from odradek.timing.purgatory import DelayedOperation

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.fetch_sessions import FetchPartition
    from odradek.broker.partitions import Partition

_m = messages(ApiKey.FETCH)
PartitionData = _m.PartitionData
_EpochEndOffset = _m.classes["response"]["EpochEndOffset"]


class FetchRead:
    """The partitions of one request, in the order in which they are read.

    ``wanted`` holds (key in the session, what is asked, the partition or the error that stands for it).
    """

    __slots__ = ("_committed_only", "_max_bytes", "min_bytes", "wanted")

    def __init__(
        self,
        wanted: list[tuple[tuple[Any, int], FetchPartition, Partition | KafkaError]],
        *,
        min_bytes: int,
        max_bytes: int,
        committed_only: bool,
    ) -> None:
        self.wanted = wanted
        self.min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._committed_only = committed_only

    def read(self) -> tuple[list[tuple[tuple[Any, int], Any]], int, bool]:
        """(results by key, bytes found, whether the answer should not wait).

        The limits are Kafka's: ``max_bytes`` over all and ``partition_max_bytes`` for each, but the first batch of the first partition
        that has one is given whole whatever its size, so that a reader gets on (KIP-74).
        """
        results = []
        left = self._max_bytes
        total = 0
        must_answer = False
        for key, asked, partition in self.wanted:
            if isinstance(partition, KafkaError):
                data = _failed(key, partition)
                must_answer = True
            else:
                try:
                    data = self._read_partition(partition, key[1], asked, min(asked.max_bytes, left), total == 0)
                    size = len(data.records)
                    total += size
                    left = max(left - size, 0)
                    if data.diverging_epoch.epoch >= 0:
                        must_answer = True
                except KafkaError as error:
                    data = _failed(key, error)
                    must_answer = True
            results.append((key, data))
        return results, total, must_answer

    def has_enough(self) -> bool:
        """Whether ``read`` would find ``min_bytes`` or something that cannot wait."""
        if self.min_bytes <= 1:
            # The common case asks for anything at all: offsets tell that without a look into the log.
            if not any(self._has_something(asked, partition) for _, asked, partition in self.wanted):
                return False
        _, total, must_answer = self.read()
        return must_answer or total >= self.min_bytes

    def partitions(self) -> list[Partition]:
        """What to wait on."""
        return [partition for _, _, partition in self.wanted if not isinstance(partition, KafkaError)]

    def _has_something(self, asked: FetchPartition, partition: Partition | KafkaError) -> bool:
        if isinstance(partition, KafkaError) or partition.log is None:
            return True
        return asked.fetch_offset != (partition.last_stable_offset if self._committed_only else partition.high_watermark)

    def _read_partition(self, partition: Partition, index: int, asked: FetchPartition, max_bytes: int, min_one: bool) -> Any:
        log = partition.require_log()
        partition.check_leader_epoch(asked.current_leader_epoch)
        if asked.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
            if epoch < 0 or end_offset < 0:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"no offset is known for epoch {asked.last_fetched_epoch}")
            if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
                return PartitionData(
                    partition_index=index,
                    high_watermark=partition.high_watermark,
                    last_stable_offset=partition.last_stable_offset,
                    log_start_offset=log.log_start_offset,
                    diverging_epoch=_EpochEndOffset(epoch=epoch, end_offset=end_offset),
                    records=b"",
                )
        upper = partition.last_stable_offset if self._committed_only else partition.high_watermark
        found = log.read(asked.fetch_offset, max_bytes, upper_offset=upper, min_one_batch=min_one)
        return PartitionData(
            partition_index=index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=() if self._committed_only else None,
            records=b"" if found is None else found,
        )


def _failed(key: tuple[Any, int], error: KafkaError) -> Any:
    return PartitionData(
        partition_index=key[1],
        error_code=error.code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        records=b"",
    )


class DelayedFetch(DelayedOperation):
    """A Fetch that waits for bytes; watched under each of its ``Partition``s."""

    __slots__ = ("_read", "_respond")

    def __init__(self, deadline_ms: float, read: FetchRead, respond: Callable[[], None]) -> None:
        super().__init__(deadline_ms)
        self._read = read
        self._respond = respond

    def try_complete(self) -> bool:
        """Part of the purgatory's interface."""
        return self._read.has_enough() and self.force_complete()

    def on_complete(self) -> None:
        """Part of the purgatory's interface."""
        self._respond()
