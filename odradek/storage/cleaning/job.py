"""A clean of a log, as the loop sees it: the plan, carried out elsewhere, and the log that takes in its result."""

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.storage.cleaning.batch_filter import LastRecord
from odradek.storage.cleaning.plan import CleanPlan, Source
from odradek.storage.log.log import Log
from odradek.storage.log.segment import Segment

_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanJob:
    """One clean of ``log``. ``segments`` are those of the plan's sources, in the same order."""

    log: Log
    plan: CleanPlan
    segments: tuple[Segment, ...]
    truncations: int

    @property
    def is_void(self) -> bool:
        """Return whether the log was closed or truncated since the job was made. Any thread."""
        return self.log.is_closed or self.log.truncations != self.truncations

    @classmethod
    def of(cls, log: Log, first_dirty_offset: int, first_uncleanable_offset: int, now_ms: int) -> "CleanJob":
        """Plan the clean of ``log`` between these offsets. Loop thread. Raises KafkaError, OSError."""
        found = [
            (segment, next_offset)
            for segment, next_offset in log.segments.with_ends(log.log_end_offset)
            if next_offset <= first_uncleanable_offset
        ]
        dirty_position = next(
            (
                segment.offset_index.position_before(first_dirty_offset)
                for segment, next_offset in found
                if segment.base_offset <= first_dirty_offset < next_offset
            ),
            0,
        )
        indexes = []
        for segment in log.segments:
            if segment.transaction_index is not None:
                segment.transaction_index.write_out()
                indexes.append((segment.transaction_index.path, segment.transaction_index.size_bytes))
        plan = CleanPlan(
            directory=log.directory,
            config=log.config,
            sources=tuple(_source(segment, next_offset) for segment, next_offset in found),
            first_dirty_offset=first_dirty_offset,
            dirty_position=dirty_position,
            first_uncleanable_offset=first_uncleanable_offset,
            synced_offset=log.recovery_point,
            last_records={
                producer_id: LastRecord(producer.batches[-1].last_offset if producer.batches else -1, producer.epoch)
                for producer_id, producer in log.producers.by_id.items()
            },
            transaction_indexes=tuple(indexes),
            unsynced_later=tuple(
                segment.path
                for segment, next_offset in log.segments.with_ends(log.log_end_offset)
                if next_offset > max(first_uncleanable_offset, log.recovery_point)
            ),
            now_ms=now_ms,
        )
        return cls(log=log, plan=plan, segments=tuple(segment for segment, _ in found), truncations=log.truncations)

    def segments_of(self, group: Sequence[Source]) -> list[Segment]:
        """Return the segments of ``group``, which are some of the plan's sources."""
        wanted = {source.base_offset for source in group}
        return [segment for segment in self.segments if segment.base_offset in wanted]


def _source(segment: Segment, next_offset: int) -> Source:
    return Source(
        segment.base_offset,
        next_offset,
        segment.path,
        segment.size,
        segment.offset_index.entry_count * _OFFSET_ENTRY_BYTES,
        segment.time_index.entry_count * _TIME_ENTRY_BYTES,
    )
