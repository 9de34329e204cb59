"""Compaction: its progress, and logs that are no longer cleaned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.metrics.definitions import Kind, Metric, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.metrics.definitions import Reading
    from odradek.broker.metrics.metered import MeteredBroker

_MANAGER = "kafka.log:type=LogCleanerManager"
_CLEANER = "kafka.log:type=LogCleaner"

UNCLEANABLE = Metric(
    "kafka_log_logcleanermanager_uncleanable_partitions_count",
    Kind.GAUGE,
    (),
    f"{_MANAGER},name=uncleanable-partitions-count,logDirectory=",
    "Partitions that are not compacted again before the next start; the broker's log has the reason.",
)
MAX_DIRTY = Metric(
    "kafka_log_logcleanermanager_max_dirty_percent",
    Kind.GAUGE,
    (),
    f"{_MANAGER},name=max-dirty-percent",
    "The share of the next log to be cleaned that is dirty, in percent; 0 if no log needs cleaning.",
)
SINCE_LAST_LOOK = Metric(
    "kafka_log_logcleanermanager_time_since_last_run_ms",
    Kind.GAUGE,
    (),
    f"{_MANAGER},name=time-since-last-run-ms",
    "The time since the cleaner last looked for logs to clean, in ms.",
)
RECOPY = Metric(
    "kafka_log_logcleaner_cleaner_recopy_percent",
    Kind.GAUGE,
    (),
    f"{_CLEANER},name=cleaner-recopy-percent",
    "The share of the bytes read by the last clean that it wrote again, in percent.",
)
UTILIZATION = Metric(
    "kafka_log_logcleaner_max_buffer_utilization_percent",
    Kind.GAUGE,
    (),
    f"{_CLEANER},name=max-buffer-utilization-percent",
    "The share of the memory for keys that the last clean used, in percent. At 100 it did not reach the end of the log.",
)
LAST_CLEAN = Metric(
    "kafka_log_logcleaner_max_clean_time_secs",
    Kind.GAUGE,
    (),
    f"{_CLEANER},name=max-clean-time-secs",
    "The duration of the last clean, in seconds.",
)
CLEANS = Metric("odradek_log_cleans", Kind.COUNTER, (), "", "Finished cleans, each of one partition.")


def _read(broker: MeteredBroker) -> Iterator[Reading]:
    cleaner = broker.log_cleaner
    stats = cleaner.last_stats
    yield UNCLEANABLE, [((), len(cleaner.uncleanable))]
    yield MAX_DIRTY, [((), int(100 * cleaner.max_dirty_ratio))]
    yield SINCE_LAST_LOOK, [((), broker.clock.now_ms() - cleaner.last_look_ms)]
    yield RECOPY, [((), int(100 * stats.written_bytes / max(stats.read_bytes, 1)) if stats else 0)]
    yield UTILIZATION, [((), int(100 * stats.map_utilization) if stats else 0)]
    yield LAST_CLEAN, [((), cleaner.last_clean_ms / 1000)]
    yield CLEANS, [((), cleaner.cleans)]


CLEANER_SECTION = Section("Compaction", (UNCLEANABLE, MAX_DIRTY, SINCE_LAST_LOOK, RECOPY, UTILIZATION, LAST_CLEAN, CLEANS), _read)
