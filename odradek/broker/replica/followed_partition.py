"""A partition that follows its leader: what it asks for, and what it does with what it gets.

It asks for what lies behind its end, and names the epoch of its last record. If the leader has other records there, it names the
epoch in which the two logs diverge, and where that epoch ends; the follower cuts its log off there, and asks again (KIP-595).
Truncation goes by epochs, never by the high watermark: what is cut off was never on all replicas.

Kafka's classes are AbstractFetcherThread and ReplicaFetcherThread.
"""

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.replica.partition import Partition
from odradek.common.logging import log as broker_log
from odradek.protocol.errors import ErrorCode, KafkaError, error_name
from odradek.protocol.message_types.fetch import EpochEndOffset, FetchPartition, PartitionData
from odradek.storage.errors import LogCorrupt, OffsetsOutOfOrder, UnexpectedAppendOffset
from odradek.storage.log.log import Log

if TYPE_CHECKING:
    from odradek.protocol.record_batch import Buffer

_NONE: Final = -1
# The leader answers so until it has heard that it leads. A new topic would be worth a warning otherwise.
_UNTIL_METADATA_ARRIVE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


class Followed(Enum):
    """What came of a response."""

    FETCHED = auto()
    # The log does not begin or end where the leader's does: ask for the leader's offsets.
    OUT_OF_RANGE = auto()
    # Ask again after ``replica.fetch.backoff.ms``.
    BACK_OFF = auto()
    # Nothing will come of this until the metadata tell of another epoch, or at all: the log or its disk has failed.
    STOPPED = auto()


class FollowedPartition:
    """One, at one epoch of its leader's. Loop thread only."""

    __slots__ = ("_is_complaining", "_is_early", "is_asked", "is_in_sync", "leader_epoch", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._is_complaining = False
        # True once the leader has answered that its metadata are behind this broker's.
        self._is_early = False
        # True once a request has named the partition.
        self.is_asked = False
        # Whether the last answer has brought all that was replicated then.
        self.is_in_sync = False

    def request(self, max_bytes: int) -> FetchPartition:
        """What lies behind the log's end. KafkaError: KAFKA_STORAGE_ERROR."""
        log = self.partition.require_log()
        self.is_asked = True
        return FetchPartition(
            partition=self.partition.index,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=log.leader_epochs.latest,
            log_start_offset=log.log_start_offset,
            partition_max_bytes=max_bytes,
        )

    def take(self, data: PartitionData, now_ms: int) -> Followed:
        """Append what the leader has sent, or cut off what it does not have."""
        if self._is_over:
            return Followed.STOPPED
        try:
            return self._take(data, now_ms)
        except KafkaError as error:
            self._complain(error.reason)
            # Batches that were damaged on their way come again.
            return Followed.BACK_OFF if error.code == ErrorCode.CORRUPT_MESSAGE else Followed.STOPPED
        except (LogCorrupt, OffsetsOutOfOrder, UnexpectedAppendOffset) as error:
            self._complain(str(error))
            return Followed.STOPPED

    def begin_at(self, leader_start_offset: int, leader_end_offset: int, now_ms: int) -> Followed:
        """The leader's log begins and ends there, and not where this one ends: go back to its end, or begin anew at its start."""
        if self._is_over:
            return Followed.STOPPED
        try:
            log = self.partition.require_log()
            if leader_end_offset < log.log_end_offset:
                self._tell("a follower ends behind its leader, and is cut off", leader_end_offset=leader_end_offset)
                self.partition.truncate_to(leader_end_offset, now_ms)
            elif leader_start_offset > log.log_end_offset:
                self._tell("a follower ends before its leader begins, and begins anew", leader_start_offset=leader_start_offset)
                self.partition.begin_anew_at(leader_start_offset, now_ms)
        except (KafkaError, LogCorrupt) as error:
            self._complain(str(error))
            return Followed.STOPPED
        return Followed.FETCHED

    @property
    def _is_over(self) -> bool:
        """Return whether the partition has another role, or epoch, by now."""
        partition = self.partition
        return partition.follower is None or partition.leader_epoch != self.leader_epoch or partition.log is None

    def _take(self, data: PartitionData, now_ms: int) -> Followed:
        match data.error_code:
            case ErrorCode.NONE:
                self._is_complaining = self._is_early = False
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                return Followed.OUT_OF_RANGE
            case ErrorCode.FENCED_LEADER_EPOCH:
                return Followed.STOPPED
            case code if code in _UNTIL_METADATA_ARRIVE and not self._is_early:
                self._is_early = True
                return Followed.BACK_OFF
            case code:
                self._complain(f"the leader answered {error_name(code)}")
                return Followed.BACK_OFF
        partition = self.partition
        log = partition.require_log()
        if data.diverging_epoch.epoch >= 0:
            offset = truncation_offset(log, data.diverging_epoch)
            if offset < log.log_end_offset:
                epoch = data.diverging_epoch.epoch
                self._tell("a follower diverges from its leader, and is cut off", offset=offset, epoch=epoch)
            partition.truncate_to(offset, now_ms)
            return Followed.FETCHED
        records = cast("Buffer", data.records or b"")
        partition.append_as_follower(records, data.high_watermark, now_ms)
        self.is_in_sync = log.log_end_offset >= data.high_watermark
        if log.log_start_offset < data.log_start_offset <= log.log_end_offset:
            log.delete_records_before(data.log_start_offset)
        return Followed.FETCHED

    def _complain(self, reason: str) -> None:
        """Log a failure, but not each time that it comes again."""
        if not self._is_complaining:
            self._is_complaining = True
            self._tell("a follower cannot fetch", reason=reason)

    def _tell(self, event: str, **what: object) -> None:
        partition = self.partition
        broker_log.warn(event, topic=partition.topic, partition=partition.index, leader=partition.leader_id, **what)


def truncation_offset(log: Log, diverging: EpochEndOffset) -> int:
    """Where to cut a follower's log. ``diverging`` is the leader's largest epoch up to the follower's last, and where it ends.

    Behind that offset the leader has later epochs only, and behind the end of that epoch here the follower has such that the
    leader lacks: neither part is in both logs. What is cut too little is cut by the next answer.
    """
    _, own_end = log.end_offset_for_epoch(diverging.epoch)
    ends = (diverging.end_offset, log.log_end_offset)
    return min(ends) if own_end == _NONE else min(own_end, *ends)
