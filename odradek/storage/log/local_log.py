"""The files of one partition's log, and the offsets between which they hold records.

Kafka's LocalLog, without its reads and flushes: those are ``log_segments`` and ``flush_state``. The log
start offset and the leader epochs, which Kafka keeps in UnifiedLog, are here because every part of a log needs them.
"""

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
        # Segments created since the log was opened; all that it had then count as one. Names are synced up to such a count.
        self.segments_begun = 1
        # How often the end was cut off. Work begun in another thread before that is void.
        self.truncations = 0

    def begin_segment(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Create the new active segment. Raises OSError."""
        active = Segment.create(self.file_system, self.directory, base_offset, config, now_ms)
        self.segments.add(active)
        self.segments_begun += 1
        return active

    def replace_all(self, base_offset: int, config: LogConfig, now_ms: int) -> None:
        """Let an empty segment be the only one. Raises OSError."""
        self.segments.reset(Segment.create(self.file_system, self.directory, base_offset, config, now_ms))
        self.segments_begun += 1
