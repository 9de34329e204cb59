"""Reading for a follower's Fetch: up to the log's end. The leader learns from the requested offsets what the follower has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.replica.delayed_fetch import FetchRead
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.fetch import PartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from odradek.broker.replica.delayed_fetch import BegunRead
    from odradek.broker.replica.fetch_partitions import FetchPartition, FetchPartitions
    from odradek.broker.replica.in_sync_replicas import FollowerState
    from odradek.broker.replica.partition import Partition


class FollowerFetchRead(FetchRead):
    """A follower's fetch. Only the first read updates the follower's state; retries while the fetch waits do not."""

    __slots__ = ("_broker_epoch", "_has_noted", "_node_id", "_now_ms")

    def __init__(
        self,
        wanted: FetchPartitions,
        find: Callable[[FetchPartition], Partition | KafkaError],
        *,
        min_bytes: int,
        max_bytes: int,
        node_id: int,
        broker_epoch: int,
        now_ms: float,
        is_whole: bool = True,
        told_by: int | None = None,
    ) -> None:
        """``node_id`` and ``broker_epoch`` are the follower's; ``now_ms`` is monotonic. For the rest see FetchRead."""
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._now_ms = now_ms
        super().__init__(
            wanted, find, min_bytes=min_bytes, max_bytes=max_bytes, committed_only=False, is_whole=is_whole, told_by=told_by
        )
        self._has_noted = False

    def read(self, begun: BegunRead | None = None) -> tuple[list[tuple[FetchPartition, PartitionData]], bool]:
        """See FetchRead."""
        found = super().read(begun)
        if not self._has_noted and (begun is None or begun.is_over):
            self._has_noted = True
            self._wanted.times.last_ms = self._now_ms
        return found

    @property
    def _view(self) -> Hashable:
        return self._node_id, self._broker_epoch

    def note_sent(self, partition: Partition, size_bytes: int) -> None:
        """Charge the leader's replication quota."""
        leader = partition.leader
        quota = None if leader is None or leader.followers is None else leader.followers.leader_quota
        if quota is not None:
            quota.record(partition.topic, partition.index, size_bytes)

    def _has_something(self, asked: FetchPartition) -> bool:
        partition: Partition | None = asked.target
        if partition is None or partition.log is None or partition.leader is None:
            return True
        if asked.current_leader_epoch >= 0 and asked.current_leader_epoch != partition.leader_epoch:
            return True
        return asked.fetch_offset != partition.log.log_end_offset

    def _is_idle(self, partition: Partition, asked: FetchPartition) -> bool:
        """Return whether the follower has everything, is in sync, and the high watermark has reached the log's end.

        A follower that is not in sync is never idle: any of its fetches may be the one that puts it in sync. A high watermark
        below the end may move because time has passed.
        """
        leader, log = partition.leader, partition.log
        return (
            not self._has_something(asked)
            and leader is not None
            and leader.followers is not None
            and self._node_id in leader.followers.isr.committed
            and log is not None
            and partition.high_watermark == log.log_end_offset
        )

    def _read_partition(self, partition: Partition, asked: FetchPartition, max_bytes: int, min_one: bool) -> PartitionData:
        log = partition.require_leader_log()
        follower = self._follower(partition)
        if follower is not None and not self._has_noted:
            follower.reconsider()
        partition.check_leader_epoch(asked.current_leader_epoch)
        if follower is None:
            # Without an epoch, it is unknown whose metadata are older. After either error the follower asks again.
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if asked.current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {self._node_id} has no replica of {partition.topic}-{partition.index}")
        if asked.last_fetched_epoch >= 0:
            diverging = self._diverging(partition, log, asked)
            if diverging is not None:
                return diverging
        found = log.read(asked.fetch_offset, max_bytes, upper_offset=log.log_end_offset, min_one_batch=min_one)
        if found is not None and self._is_held_back(partition):
            found = None
        if not self._has_noted:
            partition.fetched_by_follower(
                self._node_id, self._broker_epoch, asked.fetch_offset, asked.log_start_offset, self._wanted.times
            )
        return PartitionData(
            partition_index=asked.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=found or b"",
        )

    def _is_held_back(self, partition: Partition) -> bool:
        leader = partition.leader
        if leader is None or leader.followers is None or self._node_id in leader.followers.isr.committed:
            return False
        quota = leader.followers.leader_quota
        return quota is not None and quota.holds_back(partition.topic, partition.index)

    def _follower(self, partition: Partition) -> FollowerState | None:
        """Return the follower's state; None if this leader knows of no replica on that broker."""
        leader = partition.leader
        return None if leader is None or leader.followers is None else leader.followers.follower(self._node_id)
