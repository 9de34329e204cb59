"""A partition that follows its leader: its fetch requests, and the handling of the responses.

A request asks for the records behind the log's end and names the epoch of the last record. If the leader has other records there,
it answers with the epoch in which the two logs diverge, and where that epoch ends. The follower truncates its log there and asks
again (KIP-595). Truncation goes by epochs, never by the high watermark: it only removes records that were never on all replicas.

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
# A leader answers with these until it knows that it leads. Without this, each new topic would log a warning.
_UNTIL_METADATA_ARRIVE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)


class Followed(Enum):
    """The outcome of a response."""

    FETCHED = auto()
    # The log does not overlap the leader's: ask for the leader's offsets.
    OUT_OF_RANGE = auto()
    # Ask again after ``replica.fetch.backoff.ms``.
    BACK_OFF = auto()
    # Do not ask again until the metadata name a new epoch; if the log or its disk has failed, never.
    STOPPED = auto()


class FollowedPartition:
    """A followed partition at one leader epoch. Loop thread only."""

    __slots__ = ("_is_complaining", "_is_early", "is_asked", "is_in_sync", "leader_epoch", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._is_complaining = False
        # True after the leader's first answer that its metadata are behind this broker's.
        self._is_early = False
        # True once a request has named the partition.
        self.is_asked = False
        # True if the last response brought everything up to the leader's high watermark.
        self.is_in_sync = False

    def request(self, max_bytes: int) -> FetchPartition:
        """Return the fetch of the records behind the log's end. KafkaError: KAFKA_STORAGE_ERROR."""
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
        """Append the leader's records, or truncate records that it does not have."""
        if self._is_over:
            return Followed.STOPPED
        try:
            outcome = self._take(data, now_ms)
        except KafkaError as error:
            return self._failed(error)
        except (LogCorrupt, OffsetsOutOfOrder, UnexpectedAppendOffset) as error:
            self._complain(str(error))
            return Followed.STOPPED
        if outcome is Followed.FETCHED:
            self._is_complaining = False
        return outcome

    def begin_at(self, leader_start_offset: int, leader_end_offset: int, now_ms: int) -> Followed:
        """Adjust to the leader's range: truncate to its end, or begin anew at its start if this log ends before that."""
        if self._is_over:
            return Followed.STOPPED
        try:
            log = self.partition.require_log()
            if leader_end_offset < log.log_end_offset:
                self._tell("truncating a follower that ends after its leader", leader_end_offset=leader_end_offset)
                self.partition.truncate_to(leader_end_offset, now_ms)
            elif leader_start_offset > log.log_end_offset:
                self._tell(
                    "restarting a follower that ends before its leader's log start offset",
                    leader_start_offset=leader_start_offset,
                )
                self.partition.begin_anew_at(leader_start_offset, now_ms)
        except KafkaError as error:
            return self._failed(error)
        except LogCorrupt as error:
            self._complain(str(error))
            return Followed.STOPPED
        return Followed.FETCHED

    def _failed(self, error: KafkaError) -> Followed:
        """Complain. Damaged batches are fetched again, and a full disk may have room later."""
        self._complain(error.reason)
        log = self.partition.log
        is_passing = error.code == ErrorCode.KAFKA_STORAGE_ERROR and log is not None and not log.has_lost_sync
        return Followed.BACK_OFF if is_passing or error.code == ErrorCode.CORRUPT_MESSAGE else Followed.STOPPED

    @property
    def _is_over(self) -> bool:
        """Return whether the partition now has another role or epoch, or has gone offline."""
        partition = self.partition
        return partition.follower is None or partition.leader_epoch != self.leader_epoch or partition.log is None

    def _take(self, data: PartitionData, now_ms: int) -> Followed:
        match data.error_code:
            case ErrorCode.NONE:
                self._is_early = False
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
                self._tell("truncating a follower that diverges from its leader", offset=offset, epoch=epoch)
            partition.truncate_to(offset, now_ms)
            return Followed.FETCHED
        self._append(partition, log, data, now_ms)
        self.is_in_sync = log.log_end_offset >= data.high_watermark
        if log.log_start_offset < data.log_start_offset <= log.log_end_offset:
            log.delete_records_before(data.log_start_offset)
        return Followed.FETCHED

    def _append(self, partition: Partition, log: Log, data: PartitionData, now_ms: int) -> None:
        """Append the leader's records. An empty log begins again where they begin: the leader's start may lie within a batch."""
        records = cast("Buffer", data.records or b"")
        try:
            partition.append_as_follower(records, data.high_watermark, now_ms)
        except UnexpectedAppendOffset as error:
            end_offset = log.log_end_offset
            if log.log_start_offset != end_offset or not error.first_offset < end_offset <= error.last_offset:
                raise
            partition.begin_anew_at(error.first_offset, now_ms)
            partition.append_as_follower(records, data.high_watermark, now_ms)

    def _complain(self, reason: str) -> None:
        """Log a failure, unless the last response failed too."""
        if not self._is_complaining:
            self._is_complaining = True
            self._tell("a follower cannot fetch", reason=reason)

    def _tell(self, event: str, **what: object) -> None:
        partition = self.partition
        broker_log.warn(event, topic=partition.topic, partition=partition.index, leader=partition.leader_id, **what)


def truncation_offset(log: Log, diverging: EpochEndOffset) -> int:
    """Return the offset to truncate a follower's log to.

    ``diverging`` is the leader's largest epoch up to the follower's last one, and where it ends. Behind that offset the leader
    has only later epochs. Behind the end of that epoch in this log, the follower has only epochs that the leader lacks. So
    neither part is in both logs. If this cuts too little, the next response cuts the rest.
    """
    _, own_end = log.end_offset_for_epoch(diverging.epoch)
    ends = (diverging.end_offset, log.log_end_offset)
    return min(ends) if own_end == _NONE else min(own_end, *ends)
