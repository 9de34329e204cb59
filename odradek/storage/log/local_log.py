"""The files of one partition's log, and the range of offsets that they hold.

Kafka's LocalLog, without its reads and flushes, which are in ``log_segments`` and ``flush_state``. The log start offset and the
leader epochs, in UnifiedLog in Kafka, are here because every part of a log needs them.
"""

from typing import Final

from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_segments import LogSegments
from odradek.storage.log.segment import Segment
from odradek.storage.recovery.load_checks import LoadRequest
from odradek.storage.recovery.log_loader import LoadedLog


class LocalLog:
    """One log on disk, shared by the parts of an odradek.storage.log.log.Log. Loop thread only.

    ``log_start_offset`` is the first offset that may be read; ``log_end_offset`` is the next record's.
    """

    __slots__ = (
        "directory",
        "file_system",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "segments",
        "segments_begun",
        "topic_partition",
        "truncations",
    )

    def __init__(self, request: LoadRequest, loaded: LoadedLog) -> None:
        self.file_system = request.file_system
        self.directory = request.directory
        self.topic_partition = request.topic_partition
        self.segments = LogSegments(loaded.segments)
        self.leader_epochs = loaded.leader_epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        # The number of segments created since the log was opened; those found at opening count as one. Names are synced up to
        # such a count.
        self.segments_begun = 1
        # The number of truncations. Work that another thread began before a truncation is void.
        self.truncations = 0

    def begin_segment(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Create the new active segment. Raises OSError."""
        active = Segment.create(self.file_system, self.directory, base_offset, config, now_ms)
        self.segments.add(active)
        self.segments_begun += 1
        return active

    def replace_all(self, base_offset: int, config: LogConfig, now_ms: int) -> None:
        """Replace all segments by an empty one. Raises OSError."""
        self.segments.reset(Segment.create(self.file_system, self.directory, base_offset, config, now_ms))
        self.segments_begun += 1


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
