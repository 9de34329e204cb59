"""Which of a log's oldest segments retention removes (``cleanup.policy=delete``).

The rules are those of Kafka's UnifiedLog. A segment is removed

- if the next one begins at or below the log start offset (DeleteRecords has moved it), whatever the policy;
- if the log still has ``retention.bytes`` without it;
- if its largest timestamp is more than ``retention.ms`` ago. A timestamp in the future keeps its segment until then.

Segments are removed from the oldest on, up to the first that stays. A segment with records above the high watermark stays. The
active segment is removed only if it has records: a new one takes its place. If the policy is neither delete nor compact, only
DeleteRecords removes segments.

A segment whose records have no timestamps is as old as the last write to its file. A file system in memory does not know that:
there the records count as written when the next segment was created or opened, and the active segment is not removed by age.
"""

from odradek.storage.log_config import LogConfig
from odradek.storage.log_segments import LogSegments


def count_deletable(
    segments: LogSegments, config: LogConfig, *, log_start_offset: int, readable_offset: int, log_end_offset: int, now_ms: int
) -> int:
    """How many of ``segments`` to remove, from the first on. ``readable_offset`` is the high watermark. Raises OSError."""
    last = len(segments) - 1
    count = 0
    while count < last and segments[count + 1].base_offset <= min(log_start_offset, readable_offset):
        count += 1
    if not config.has_retention or not (count < last or segments.active.size):
        return count
    eligible = count
    while eligible < last and segments[eligible + 1].base_offset <= readable_offset:
        eligible += 1
    if eligible == last and segments.active.size and log_end_offset <= readable_offset:
        eligible += 1
    if config.retention_bytes >= 0:
        surplus = sum(segments[number].size for number in range(count, last + 1)) - config.retention_bytes
        while count < eligible and surplus >= segments[count].size:
            surplus -= segments[count].size
            count += 1
    if config.retention_ms >= 0:
        while count < eligible and _is_older(segments, count, now_ms - config.retention_ms):
            count += 1
    return count


def _is_older(segments: LogSegments, number: int, than_ms: int) -> bool:
    """Whether the newest record of a segment is from before ``than_ms``."""
    timestamp = segments[number].largest_timestamp()
    if timestamp >= 0:
        return timestamp < than_ms
    return number + 1 < len(segments) and segments[number + 1].created_ms < than_ms
