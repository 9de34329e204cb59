"""Finds the logs to compact, and chooses the dirtiest.

The dirty part of a log begins where the last clean ended. Never cleaned are the active segment, records at or above the last
stable offset, and everything from the first dirty segment on that has a record newer than ``min.compaction.lag.ms``. A clean is
due if more than ``min.cleanable.dirty.ratio`` of the cleanable bytes are dirty, or a dirty record is older than
``max.compaction.lag.ms``.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.protocol.errors import KafkaError
from odradek.storage.log.log import Log
from odradek.storage.log.segment import Segment
from odradek.storage.recovery.recovery import Warn

_MAX_LONG = 2**63 - 1


class Candidate(NamedTuple):
    """A log with a dirty part. ``first_uncleanable_offset`` begins a segment. ``is_overdue``: a record has waited too long."""

    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """Return the dirty fraction of the cleanable bytes, from 0 to 1."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Return whether a clean is due."""
        return self.cleanable_bytes > 0 and (self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio)


def first_dirty_offset(log: Log, cleaned_offset: int | None, warn: Warn) -> int:
    """Return the start of the next clean: ``cleaned_offset``, the last one's end, or if invalid the log's start."""
    start = log.log_start_offset
    if cleaned_offset is None or start <= cleaned_offset <= log.log_end_offset:
        return start if cleaned_offset is None else cleaned_offset
    # If the policy also deletes, retention moves the log's start. That needs no warning.
    if cleaned_offset > log.log_end_offset or not log.config.has_retention:
        warn(
            "cleaner offset out of range, cleaning from the log start offset",
            topic=log.topic,
            partition=log.partition,
            cleaned_offset=cleaned_offset,
            log_start_offset=start,
            log_end_offset=log.log_end_offset,
        )
    return start


def look_at(log: Log, dirty_offset: int, now_ms: int, replicated_offset: int | None = None) -> Candidate | None:
    """Return the cleanable part of ``log`` from ``dirty_offset`` on, or None. Raises KafkaError, OSError.

    Other replicas have the log below ``replicated_offset``; later records may still be truncated. None without other replicas.
    """
    if dirty_offset >= log.segments.active.base_offset:
        return None
    *segments, active = log.segments
    ends = [*(segment.base_offset for segment in segments[1:]), active.base_offset]
    dirty = [segment for segment, end in zip(segments, ends, strict=True) if end > dirty_offset]
    limit = _uncleanable_from(log, dirty, now_ms)
    if replicated_offset is not None:
        limit = min(limit, replicated_offset)
    # A segment is cleaned only if it may be cleaned to its end.
    cleanable = [segment for segment, end in zip(segments, ends, strict=True) if dirty_offset < end <= limit]
    if not cleanable:
        return None
    return Candidate(
        log,
        dirty_offset,
        max(end for end in ends if end <= limit),
        sum(segment.size for segment in segments if segment.base_offset < dirty_offset),
        sum(segment.size for segment in cleanable),
        _is_overdue(log, dirty, now_ms),
    )


def choose(
    logs: Iterable[Log], now_ms: int, warn: Warn, replicated_offset: Callable[[tuple[str, int]], int | None] = lambda _: None
) -> tuple[Candidate | None, list[tuple[Log, Exception]]]:
    """Return (the log to clean next if any is due, the logs that could not be checked and why). Loop thread."""
    found: list[Candidate] = []
    failed: list[tuple[Log, Exception]] = []
    for log in logs:
        if not log.config.is_compacted or len(log.segments) == 1:
            continue
        dirty_offset = first_dirty_offset(log, log.cleaned_offset, warn)
        if log.cleaned_offset is not None:
            # Report an offset out of range only once.
            log.cleaned_offset = dirty_offset
        try:
            candidate = look_at(log, dirty_offset, now_ms, replicated_offset(log.topic_partition))
        except (KafkaError, OSError) as error:
            failed.append((log, error))
            continue
        if candidate is not None:
            found.append(candidate)
    return filthiest(found), failed


def filthiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """Return the candidate to clean next, if any is due."""
    return max((found for found in candidates if found.is_due), key=lambda found: found.dirty_ratio, default=None)


def _uncleanable_from(log: Log, dirty: Iterable[Segment], now_ms: int) -> int:
    limit = log.segments.active.base_offset
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = (segment.base_offset for segment in dirty if segment.largest_timestamp() > now_ms - lag_ms)
        limit = next(young, limit)
    unstable = log.first_unstable_offset
    return limit if unstable is None else min(limit, unstable)


def _is_overdue(log: Log, dirty: Iterable[Segment], now_ms: int) -> bool:
    """Return whether a dirty record is older than ``max.compaction.lag.ms``, by the first batch of each dirty segment."""
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == _MAX_LONG:
        return False
    first_timestamps = (segment.learn_first_timestamp() for segment in dirty)
    return min((timestamp for timestamp in first_timestamps if timestamp > 0), default=now_ms) < now_ms - lag_ms
