"""The limits that each append checks, derived once from the topic's configuration."""

from typing import Final

from odradek.storage.log.log_config import LogConfig

# Larger than any count or timestamp, but still a small integer in compiled code.
_NEVER_REACHED: Final = 2**62 - 1


class LogSettings:
    """One log's configuration, shared by its parts. ``use`` replaces it."""

    __slots__ = (
        "config",
        "flush_messages",
        "index_interval_bytes",
        "inspects_all",
        "latest_in_ms",
        "max_message_bytes",
        "max_segment_ms",
        "segment_bytes",
        "stamps_append_time",
    )

    def __init__(self, config: LogConfig) -> None:
        self.use(config)

    def use(self, config: LogConfig) -> None:
        """Set the topic's configuration."""
        self.config = config
        self.segment_bytes = config.segment_bytes
        self.max_segment_ms = config.max_segment_ms
        self.max_message_bytes = config.max_message_bytes
        self.index_interval_bytes = config.index_interval_bytes
        self.flush_messages = min(config.flush_messages, _NEVER_REACHED)
        self.stamps_append_time = config.stamps_append_time
        # The limit on how far a record's timestamp may be ahead of the clock.
        self.latest_in_ms = _NEVER_REACHED if config.stamps_append_time else config.message_timestamp_after_max_ms
        # True if every batch has to be opened (odradek.storage.log.validation).
        limits_age = config.limits_old_timestamps and not config.stamps_append_time
        self.inspects_all = config.is_compacted or limits_age or config.target_codec is not None
