"""The settings of the bank's broker, Kafka's as well, and how hard it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SMALLEST_SEGMENT_BYTES = 1 << 20
# The share of dirty bytes from which on a log is to be compacted.
CLEANABLE_RATIO = 0.1
SETTINGS: Mapping[str, object] = {
    "group.min.session.timeout.ms": 1_000,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    # Segments as small as Kafka allows, and young; all logs of a coordinator in a few partitions; an eager cleaner.
    "offsets.topic.num.partitions": 3,
    "offsets.topic.segment.bytes": SMALLEST_SEGMENT_BYTES,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.segment.bytes": SMALLEST_SEGMENT_BYTES,
    "log.segment.bytes": SMALLEST_SEGMENT_BYTES,
    "log.roll.ms": 10_000,
    "log.cleaner.backoff.ms": 500,
    "log.cleaner.min.cleanable.ratio": CLEANABLE_RATIO,
    "log.cleaner.delete.retention.ms": 5_000,
    "log.segment.delete.delay.ms": 1_000,
    # Recovery points are written in each life. Without them each start reads all logs from their first offset on.
    "log.initial.task.delay.ms": 1_000,
    "log.flush.offset.checkpoint.interval.ms": 2_000,
    "log.flush.start.offset.checkpoint.interval.ms": 2_000,
}


@dataclass(frozen=True, slots=True)
class Pace:
    """How much work there is, and how often the broker and tellers are harmed: at random between two intervals, or never.

    The transaction of a killed teller without a successor of its name holds back readers for ``transaction_timeout_ms``.
    """

    orders_a_second: float = 1_000.0
    orders_a_transaction: int = 25
    broker_kill_interval_s: tuple[float, float] | None = (5.0, 8.0)
    harm_interval_s: tuple[float, float] | None = (2.0, 5.0)
    session_timeout_ms: int = 3_000
    transaction_timeout_ms: int = 5_000
    progress_timeout_s: float = 30.0
    # By the served clock, see ``patience``. A transaction that was left open, and then timed out, holds compaction back.
    compaction_timeout_s: float = 60.0

    @property
    def frozen_s(self) -> float:
        """Longer than the session timeout, so that a frozen teller wakes as a zombie."""
        return self.session_timeout_ms / 1000 + 1


# Kafka takes longer to start, most of all beside its clients.
KAFKA_PACE = Pace(broker_kill_interval_s=(15.0, 25.0), progress_timeout_s=180.0, compaction_timeout_s=120.0)
