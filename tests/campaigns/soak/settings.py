"""The settings of the bank's broker, Kafka's as well, and how hard it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SMALLEST_SEGMENT_BYTES = 1 << 20
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
    "log.cleaner.min.cleanable.ratio": 0.1,
    "log.cleaner.delete.retention.ms": 5_000,
    "log.segment.delete.delay.ms": 1_000,
}


@dataclass(frozen=True, slots=True)
class Pace:
    """How much work there is, and how often the broker and tellers are harmed: at random between two intervals, or never."""

    orders_a_second: float = 1_000.0
    orders_a_transaction: int = 25
    broker_kill_interval_s: tuple[float, float] | None = (5.0, 8.0)
    harm_interval_s: tuple[float, float] | None = (2.0, 5.0)
    progress_timeout_s: float = 30.0


# Kafka takes longer to start, most of all beside its clients.
KAFKA_PACE = Pace(broker_kill_interval_s=(15.0, 25.0), progress_timeout_s=180.0)
