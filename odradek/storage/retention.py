"""Which of a log's oldest segments may go (``cleanup.policy=delete``): by age, by size, and because the log starts behind them.

As Kafka's UnifiedLog does it. A segment goes

- when the next one begins at or below the log start offset (DeleteRecords has moved it), whatever the policy;
- when without it the log still has ``retention.bytes``;
- when its largest timestamp is more than ``retention.ms`` ago. A timestamp in the future keeps its segment until then.

They go from the oldest on, up to the first that stays; never one with records that readers may not see yet; and the active one
only if it has records: a new one takes its place. A policy of neither delete nor compact keeps what DeleteRecords leaves.

Records without a timestamp count as written when the next segment began, or was found at the start; the active segment, if it
has no other, is not deleted by age. Kafka takes the file's modification time.
"""

from collections.abc import Sequence

from odradek.storage.log_config import LogConfig
from odradek.storage.segment import Segment


def count_deletable(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    readable_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> int:
    """How many of ``segments``, from the first on, go now. ``readable_offset`` is the high watermark. Raises OSError."""
    ends = [*(segment.base_offset for segment in segments), log_end_offset][1:]
    eligible = sum(1 for end in ends if end <= readable_offset)
    if not segments[-1].size:
        eligible = min(eligible, len(segments) - 1)
    count = 0
    while count < min(eligible, len(segments) - 1) and ends[count] <= log_start_offset:
        count += 1
    if not config.has_retention:
        return count
    if config.retention_bytes >= 0:
        surplus = sum(segment.size for segment in segments[count:]) - config.retention_bytes
        while count < eligible and surplus >= segments[count].size:
            surplus -= segments[count].size
            count += 1
    if config.retention_ms >= 0:
        while count < eligible and _is_older(segments, count, now_ms - config.retention_ms):
            count += 1
    return count


def _is_older(segments: Sequence[Segment], number: int, than_ms: int) -> bool:
    """Whether the newest record of a segment is from before ``than_ms``."""
    timestamp = segments[number].learn_max_timestamp()
    if timestamp >= 0:
        return timestamp < than_ms
    return number + 1 < len(segments) and segments[number + 1].created_ms < than_ms
