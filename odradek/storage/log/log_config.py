"""The topic configs that a log uses, under Kafka's names (dots as underscores) and with Kafka's defaults.

Left out: ``preallocate``, which only makes appends faster.
"""

from dataclasses import dataclass, field

_MAX_LONG = 2**63 - 1
_DAY_MS = 24 * 60 * 60 * 1000
CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One topic's effective configuration. Sizes in bytes, times in ms. Replaced as a whole when the topic is altered."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _MAX_LONG
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    cleanup_policy: tuple[str, ...] = ("delete",)
    # Negative: no limit.
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60 * 1000
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _MAX_LONG
    flush_messages: int = _MAX_LONG
    flush_ms: int = _MAX_LONG
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    # A broker config in Kafka, here because each log holds its own producers.
    producer_id_expiration_ms: int = _DAY_MS
    # segment.ms. In a compacted log, max.compaction.lag.ms if that is less, as the active segment is never compacted.
    max_segment_ms: int = field(init=False)

    def __post_init__(self) -> None:
        max_segment_ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms
        object.__setattr__(self, "max_segment_ms", max_segment_ms)

    @property
    def is_compacted(self) -> bool:
        """Return whether every record needs a key."""
        return "compact" in self.cleanup_policy

    @property
    def has_retention(self) -> bool:
        """Return whether segments are removed by age or by the log's size."""
        return "delete" in self.cleanup_policy

    @property
    def stamps_append_time(self) -> bool:
        """Return whether the broker's time replaces the producer's."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def limits_old_timestamps(self) -> bool:
        """Return whether a record can be too old. The default sets no limit."""
        return self.message_timestamp_before_max_ms < _MAX_LONG

    @property
    def target_codec(self) -> int | None:
        """Return the codec of the stored batches; None if the producer chooses it."""
        return CODECS.get(self.compression_type)

    @property
    def target_level(self) -> int | None:
        """Return the compression level of that codec; None if it has no levels."""
        levels = {"gzip": self.compression_gzip_level, "lz4": self.compression_lz4_level, "zstd": self.compression_zstd_level}
        return levels.get(self.compression_type)
