"""A partition that this broker leads: a log, and the marks on it.

One broker is every partition's only replica, so what is appended is replicated: the high watermark follows the log's end at
once, or as soon as the flush is done that ``flush.messages`` asks for. Everything that asks about replication (acks, delayed
produce, reads bounded by the high watermark) goes by the marks kept here, not by that shortcut.
"""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.coordinator.runtime.marker import EndTxnMarker
    from odradek.protocol.record_batch import BatchHeader, Buffer
    from odradek.storage.append_info import AppendInfo
    from odradek.storage.log import Log

# A control batch of one record.
END_TXN_MARKER_BYTES: Final = 78


class Partition:
    """A partition led here. ``log`` is None while it is offline, and then ``offline_reason`` says why."""

    __slots__ = (
        "_wake_fetches",
        "appended_bytes",
        "fetched_bytes",
        "found_offset",
        "high_watermark",
        "index",
        "is_deleted",
        "leader_epoch",
        "log",
        "offline_reason",
        "on_high_watermark",
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
        self.high_watermark = 0 if log is None else log.log_end_offset
        # Who else wants to know when the high watermark has moved: the coordinator whose log this is.
        self.on_high_watermark: Callable[[], None] | None = None
        # Looks after the fetches that wait here.
        self._wake_fetches = wake_fetches
        # For those who watch: what was appended and handed out since the log was opened, whose end was at ``found_offset`` then.
        self.found_offset = self.high_watermark
        self.appended_bytes = 0
        self.fetched_bytes = 0

    @property
    def last_stable_offset(self) -> int:
        """Up to where no transaction is open: at most the high watermark. KafkaError: KAFKA_STORAGE_ERROR."""
        log = self.log
        first_unstable = None if log is None else log.first_unstable_offset
        return self.high_watermark if first_unstable is None else min(first_unstable, self.high_watermark)

    def require_log(self) -> "Log":
        """The log, or KAFKA_STORAGE_ERROR where it is offline."""
        if self.log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.topic}-{self.index} is offline: {self.offline_reason}")
        return self.log

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Compare a client's idea of the epoch (KIP-320): FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH; -1 asks for nothing."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {self.leader_epoch}")
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is {self.leader_epoch}")

    def append(
        self, records: "Buffer", now_ms: int, transaction_verified: bool = False, header: "BatchHeader | None" = None
    ) -> "AppendInfo":
        """Append one batch as leader and wake the fetches that wait here; ``header`` if it was read. Errors: ``Log.append``'s."""
        log = self.log
        if log is None:
            log = self.require_log()
        info = log.append(
            records,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            transaction_verified=transaction_verified,
            header=header,
        )
        self._appended(log, len(records))
        return info

    def append_internal(
        self,
        records: "Sequence[tuple[bytes, bytes | None]]",
        now_ms: int,
        compression: int = 0,
        producer: tuple[int, int] | None = None,
    ) -> int:
        """Append records of the broker itself, and wake the fetches; the log's end. Errors: ``CoordinatorAppends``."""
        log = self.require_log()
        size_bytes = log.coordinator_appends.append_internal(
            records, leader_epoch=self.leader_epoch, now_ms=now_ms, compression=compression, producer=producer
        )
        self._appended(log, size_bytes)
        return log.log_end_offset

    def append_marker(self, marker: "EndTxnMarker", now_ms: int) -> "AppendInfo":
        """End a producer's transaction here, and wake the fetches. Errors: ``CoordinatorAppends``."""
        log = self.require_log()
        info = log.coordinator_appends.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.is_commit,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            transaction_version=marker.transaction_version,
        )
        self._appended(log, END_TXN_MARKER_BYTES)
        return info

    def _appended(self, log: "Log", size_bytes: int) -> None:
        self.appended_bytes += size_bytes
        if log.awaits_flush:
            return
        self.high_watermark = log.log_end_offset
        if self.on_high_watermark is not None:
            self.on_high_watermark()
        self._wake_fetches(self)

    def flushed(self, offset: int) -> None:
        """The log has been flushed up to ``offset``: what waited for that may be read, and is acknowledged."""
        log = self.log
        if log is None:
            return
        high_watermark = offset if log.awaits_flush else log.log_end_offset
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            if self.on_high_watermark is not None:
                self.on_high_watermark()
            self._wake_fetches(self)

    def flush_failed(self) -> None:
        """What waits for a flush waits in vain."""
        if self.on_high_watermark is not None:
            self.on_high_watermark()

    def take_offline(self, reason: str) -> None:
        """Stop serving: its disk or its log failed."""
        self.log = None
        self.offline_reason = reason
        self._wake_fetches(self)

    def delete(self) -> None:
        """Its topic is gone: who waits here is told so."""
        self.is_deleted = True
        self.take_offline("deleted")
