"""A partition that this broker has a replica of: its log, the broker's role, and the offsets that follow from both.

The role (``roles``) computes the high watermark from the log end offsets of the in-sync replicas. The partition keeps it, and
wakes requests that wait for it. Everything about replication (acks, delayed produce, reads bounded by the high watermark) uses
the value kept here. With a single broker, a record is replicated when it is appended, or when the flush that ``flush.messages``
demands is done.
"""

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from odradek.broker.replica.roles import NO_LEADER, Follower, Leader
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.replica.fetch_partitions import FetchPartition, FetchTimes
    from odradek.broker.replica.in_sync_replicas import InSyncReplicas
    from odradek.coordinator.runtime.result import EndTxnMarker
    from odradek.protocol.record_batch import BatchHeader, Buffer
    from odradek.storage.log.log import Log
    from odradek.storage.log.log_writer import AppendInfo
    from odradek.timing.timer import Purgatory

# The ``acks`` of a producer that waits for all in-sync replicas.
ALL_IN_SYNC: Final = -1
# A control batch of one record.
END_TXN_MARKER_BYTES: Final = 78


class Partition:
    """A replica of a partition. ``log`` is None while it is offline; ``offline_reason`` then says why.

    ``leader`` is None if another broker leads, and ``follower`` is None if this broker leads.
    """

    __slots__ = (
        "_wake_fetches",
        "appended_bytes",
        "fetched_by",
        "fetched_bytes",
        "follower",
        "found_offset",
        "high_watermark",
        "index",
        "is_deleted",
        "leader",
        "leader_epoch",
        "log",
        "offline_reason",
        "on_high_watermark",
        "on_shared_change",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        leader_epoch: int,
        log: "Log | None",
        wake_fetches: "Callable[[Partition], object]",
        offline_reason: str = "",
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log = log
        self.offline_reason = offline_reason
        self.is_deleted = False
        self.leader: Leader | None = Leader()
        self.follower: Follower | None = None
        self.high_watermark = 0 if log is None else log.log_end_offset
        # Called when the high watermark has moved: the coordinator that owns this log learns of commits by it.
        self.on_high_watermark: Callable[[], None] | None = None
        # Called after every change, while share groups read this partition.
        self.on_shared_change: Callable[[Partition], object] | None = None
        # Completes fetches that wait here, if they have enough.
        self._wake_fetches = wake_fetches
        # The fetches' entries for this partition. Each is told of every change.
        self.fetched_by: dict[FetchPartition, None] = {}
        # For metrics: bytes appended and read since the log was opened, when it ended at ``found_offset``.
        self.found_offset = self.high_watermark
        self.appended_bytes = 0
        self.fetched_bytes = 0
        if log is not None:
            self.use_log(log)

    @property
    def last_stable_offset(self) -> int:
        """The offset before which all transactions have ended, with their ends replicated. KafkaError: KAFKA_STORAGE_ERROR."""
        log = self.log
        return self.high_watermark if log is None else log.last_stable_offset(self.high_watermark)

    @property
    def is_unsettled(self) -> bool:
        """Return whether this newly elected leader does not know yet that everything from before its election is replicated."""
        leader = self.leader
        return leader is not None and leader.followers is not None and self.high_watermark < leader.followers.epoch_start_offset

    @property
    def low_watermark(self) -> int | None:
        """The lowest log start offset of all known live replicas; None while the partition is offline."""
        log, leader = self.log, self.leader
        if log is None:
            return None
        if leader is None or leader.followers is None:
            return log.log_start_offset
        return leader.followers.low_watermark(log.log_start_offset)

    def use_log(self, log: "Log") -> None:
        """Use ``log`` for this replica from now on."""
        self.log = log
        log.retention.on_start_moved = self._changed

    def _changed(self) -> None:
        """Note a change in all fetches of this partition: there may be something new to read, to report or to ask for."""
        for asked in self.fetched_by:
            asked.note_change()
        follower = self.follower
        if follower is not None and follower.on_change is not None:
            follower.on_change()
        self._wake_fetches(self)
        if self.on_shared_change is not None:
            self.on_shared_change(self)

    def require_log(self) -> "Log":
        """Return the log. KafkaError: KAFKA_STORAGE_ERROR if it is offline."""
        if self.log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.index} is offline: {self.offline_reason}")
        return self.log

    def require_leader_log(self) -> "Log":
        """Return the log for clients to read. KafkaError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR."""
        log = self.log
        if log is None or self.leader is None:
            log = self._require_leadership()[1]
        return log

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Check a client's leader epoch (KIP-320); -1 passes. KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {self.leader_epoch}")
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is {self.leader_epoch}")

    def append(
        self,
        records: "Buffer",
        now_ms: int,
        transaction_verified: bool = False,
        header: "BatchHeader | None" = None,
        is_inspected: bool = False,
    ) -> "AppendInfo":
        """Append one batch as leader and wake the waiting fetches. ``header``: if already read. Errors: ``Log.append``'s."""
        leader = self.leader
        log = self.log
        if leader is None or log is None:
            leader, log = self._require_leadership()
        info = log.append(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            transaction_verified=transaction_verified,
            header=header,
            is_inspected=is_inspected,
        )
        self.appended_bytes += len(records)
        self._advance(leader.high_watermark(log, self.high_watermark))
        if leader.followers is not None:
            self._changed()
        return info

    def append_internal(
        self,
        records: "Sequence[tuple[bytes, bytes | None]]",
        now_ms: int,
        compression: int = 0,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append the broker's own records, and wake the fetches; returns the log end offset. Errors: ``CoordinatorAppends``'s."""
        leader, log = self._require_leadership()
        size_bytes = log.coordinator_appends.append_internal(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, compression=compression, producer=producer
        )
        self.appended_bytes += size_bytes
        self._advance(leader.high_watermark(log, self.high_watermark))
        if leader.followers is not None:
            self._changed()
        return log.log_end_offset

    def append_marker(self, marker: "EndTxnMarker", now_ms: int) -> "AppendInfo":
        """End a producer's transaction in this partition, and wake the fetches. Errors: ``CoordinatorAppends``'s."""
        leader, log = self._require_leadership()
        info = log.coordinator_appends.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.is_commit,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            transaction_version=marker.transaction_version,
        )
        self.appended_bytes += END_TXN_MARKER_BYTES
        self._advance(leader.high_watermark(log, self.high_watermark))
        log.settle_transactions(self.high_watermark)
        if leader.followers is not None:
            self._changed()
        return info

    def _require_leadership(self) -> "tuple[Leader, Log]":
        """Return the leader role and the log. KafkaError: KAFKA_STORAGE_ERROR if offline, else NOT_LEADER_OR_FOLLOWER."""
        log = self.require_log()
        leader = self.leader
        if leader is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic}-{self.index} is led by another broker")
        return leader, log

    def _advance(self, high_watermark: int) -> None:
        """Raise the high watermark to the role's value, and wake requests that wait for it."""
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            if self.on_high_watermark is not None:
                self.on_high_watermark()
            self._changed()

    def is_acknowledged(self, last_offset: int, acks: int) -> bool:
        """Return whether a batch that ends with ``last_offset`` is as safe as ``acks`` ask for.

        Either all in-sync replicas have it. Or, with acks=1, this broker has it as ``flush.messages`` promises. KafkaError:
        KAFKA_STORAGE_ERROR if the log is offline.
        """
        if last_offset < self.high_watermark:
            return True
        return acks == 1 and last_offset < self.require_log().flush_state.readable_offset

    def has_enough_replicas(self, acks: int) -> bool:
        """Return whether replicated records may be acknowledged. With acks=all, ``min.insync.replicas`` must still be in sync."""
        leader = self.leader
        return acks != ALL_IN_SYNC or leader is None or leader.followers is None or leader.followers.has_enough

    def require_enough_replicas(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if an append with acks=all must be refused."""
        leader = self.leader
        if leader is not None and leader.followers is not None:
            leader.followers.require_enough()

    def fetched_by_follower(
        self, node_id: int, broker_epoch: int, offset: int, log_start_offset: int, times: "FetchTimes | None" = None
    ) -> None:
        """Note that a follower has everything before ``offset``. Errors: ``InSyncReplicas.fetched``'s."""
        leader, log = self._require_leadership()
        if leader.followers is None:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.topic}-{self.index} has no other replicas")
        had_start_offset = leader.followers.start_offset_of(node_id)
        leader.followers.fetched(
            node_id,
            broker_epoch,
            offset,
            log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=self.high_watermark,
            times=times,
        )
        if log_start_offset != had_start_offset:
            self._changed()
        self._advance(leader.high_watermark(log, self.high_watermark))

    def replication_changed(self) -> None:
        """Update after a change of the in-sync replicas: the high watermark may move, and requests may complete."""
        leader, log = self.leader, self.log
        if leader is not None and log is not None:
            self._advance(leader.high_watermark(log, self.high_watermark))
            self._changed()

    def append_as_follower(self, batches: "Buffer", leader_high_watermark: int, now_ms: int) -> "AppendInfo | None":
        """Append the records of a fetch from the leader; None if no batch is whole. Errors: ``Log.append_as_follower``'s."""
        follower, log = self._require_following()
        info = log.append_as_follower(batches, leader_epoch=self.leader_epoch, now_ms=now_ms)
        follower.leader_high_watermark = leader_high_watermark
        self._advance(follower.high_watermark(log, self.high_watermark))
        log.settle_transactions(self.high_watermark)
        return info

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Truncate records that the leader does not have. Errors: ``Log.truncate_to``'s."""
        _, log = self._require_following()
        is_cut = log.truncate_to(offset, now_ms)
        self.high_watermark = min(self.high_watermark, log.log_end_offset)
        self._changed()
        return is_cut

    def begin_anew_at(self, offset: int, now_ms: int) -> None:
        """Let the log start and end at ``offset``: the leader has nothing before it. Errors: ``Log``'s."""
        _, log = self._require_following()
        log.truncate_fully_and_start_at(offset, now_ms)
        self.high_watermark = offset
        self._changed()

    def _require_following(self) -> "tuple[Follower, Log]":
        """Return the follower role and the log. KafkaError: KAFKA_STORAGE_ERROR if offline, else NOT_LEADER_OR_FOLLOWER."""
        log = self.require_log()
        follower = self.follower
        if follower is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic}-{self.index} is led by this broker")
        return follower, log

    def flushed(self) -> None:
        """Count flushed records as this replica's, after a flush of the log."""
        log = self.log
        if log is None:
            return
        role = self.leader or self.follower
        if role is not None:
            self._advance(role.high_watermark(log, self.high_watermark))

    def become_leader(self, leader_epoch: int, followers: "InSyncReplicas | None" = None) -> None:
        """Become the leader. The high watermark stays until the in-sync replicas have reported their log end offsets."""
        self.leader_epoch = leader_epoch
        if followers is not None and self.log is not None:
            self._begin_epoch(self.log)
        if self.leader is None or followers is not None:
            self.leader = Leader(followers)
            self.follower = None
        self._changed()

    def _begin_epoch(self, log: "Log") -> None:
        """Note where the epoch begins, before its first record.

        A follower may have an epoch of its own without records, because it led before. Asked for that epoch, the leader must know
        a later one.
        """
        if self.leader_epoch > log.leader_epochs.latest:
            try:
                log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)
            except OSError as error:
                log.storage_error(error)

    def become_follower(self, leader_id: int, leader_epoch: int) -> None:
        """Follow another broker, or none (NO_LEADER). Waiting requests fail, so that their clients look for the leader."""
        self.leader_epoch = leader_epoch
        if self.follower is None or self.follower.leader_id != leader_id:
            self.leader = None
            self.follower = Follower(leader_id)
        self._changed()

    @property
    def leader_id(self) -> int:
        """The id of the leader if another broker leads, else NO_LEADER."""
        return NO_LEADER if self.follower is None else self.follower.leader_id

    def flush_failed(self) -> None:
        """Let the coordinator handle records that will never be flushed."""
        if self.on_high_watermark is not None:
            self.on_high_watermark()

    def take_offline(self, reason: str) -> None:
        """Stop serving: the disk or the log has failed."""
        self.log = None
        self.offline_reason = reason
        self._changed()

    def delete(self) -> None:
        """Stop serving because the topic was deleted. Waiting requests fail."""
        self.is_deleted = True
        self.take_offline("deleted")


def wake_fetches(purgatory: "Purgatory[Any]", partition: Partition) -> None:
    """Try the fetches that wait for ``partition``. Bound to a purgatory, this is a ``Partition``'s ``wake_fetches``."""
    for asked in tuple(partition.fetched_by):
        if asked.watched_by is not None:
            purgatory.check_and_complete(asked.watched_by)
