"""Opens a log's directory: finds its segments, recovers them if needed, and determines the log's start and end.

Left out: splitting overflowed segments of Kafka before 2.0.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from odradek.storage.errors import LogCorrupt
from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.log.producer_restore import ProducerSnapshots, restore
from odradek.storage.log.producer_state import ProducerStates
from odradek.storage.log.segment import SEGMENT_SUFFIXES, Segment, offsets_of, segment_path
from odradek.storage.log.segment_files import finish_swaps, remove_leftovers
from odradek.storage.recovery.load_checks import (
    EpochsMisfit,
    LoadRequest,
    ensure_end,
    ensure_epoch_of,
    ensure_epochs_begin,
    ensure_epochs_begin_below,
    ensure_first_segment,
    found_start,
    warn_of_lost_segments,
)
from odradek.storage.recovery.recovery import SegmentEnd, check_end, recover_segment

_SUFFIXES = (".log", ".index", ".timeindex")
_TRANSACTION_INDEX_SUFFIX = ".txnindex"
_ENTRY_BYTES = (1, 8, 12)


class LoadedLog(NamedTuple):
    """A log as opened. ``segments`` has at least one segment, ascending.

    ``producers`` is None if a snapshot at the log end offset has them, or the log is empty. They are then loaded when needed.
    """

    segments: list[Segment]
    leader_epochs: LeaderEpochs
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    snapshots: ProducerSnapshots
    producers: ProducerStates | None


def load(request: LoadRequest) -> LoadedLog:
    """Read a log's directory, recover its unflushed part, and create a segment if there is none.

    Raises LogCorrupt, OSError.
    """
    found = set(request.file_system.list_dir(request.directory))
    found = finish_swaps(request.file_system, request.directory, found, request.warn)
    warn_of_lost_segments(request.directory, found, request.log_start_offset, request.warn)
    epochs = LeaderEpochs(request.file_system, request.directory)
    knows_epochs = epochs.load()
    ensure_first_segment(request, found, epochs)
    names = remove_leftovers(request.file_system, request.directory, found, request.log_start_offset)
    segments = _find_segments(request, names)
    has_records = any(segment.size for segment in segments)
    if not knows_epochs and has_records:
        request.warn("cannot read leader epochs, taking them from the log", directory=request.directory)
    try:
        ensure_epochs_begin(request, segments, epochs)
        next_offset = _recover(request, segments, epochs, names, knows_epochs=knows_epochs or not has_records)
        ensure_epochs_begin_below(next_offset, epochs)
    except EpochsMisfit as misfit:
        request.warn("leader epochs do not match the log, taking them from it", directory=request.directory, reason=str(misfit))
        epochs = LeaderEpochs(request.file_system, request.directory)
        knows_epochs = False
        next_offset = _recover(request, segments, epochs, names, knows_epochs=False)
    log_start_offset = found_start(request, segments, epochs, next_offset)
    ensure_end(request, segments, max(next_offset, log_start_offset))
    if segments and next_offset < log_start_offset:
        request.warn(
            "log ends before its start offset, starting it again",
            directory=request.directory,
            log_start_offset=log_start_offset,
            log_end_offset=next_offset,
        )
        _remove(request, segments)
        segments = []
    if not segments:
        next_offset = log_start_offset
        segments = [Segment.create(request.file_system, request.directory, next_offset, request.config, request.now_ms)]
    epochs.truncate_from_end(next_offset)
    epochs.truncate_from_start(log_start_offset)
    segments[-1].learn_max_timestamp()
    snapshots = ProducerSnapshots(request.file_system, request.directory, names, request.warn)
    snapshots.keep_only([segment.base_offset for segment in segments], log_start_offset, next_offset)
    has_lost_aborted = _has_lost_aborted(request, segments)
    for segment in segments:
        segment.forget_aborted_from(next_offset, is_sound=request.is_clean and not has_lost_aborted)
    producers = _restore_producers(request, segments, snapshots, log_start_offset, next_offset, reads_all=has_lost_aborted)
    if epochs.is_held:
        # Indexes before the recovery point were rebuilt. They are synced first: a start without epochs rebuilds them again.
        for segment in segments:
            if segment.size and segment.has_unsynced_index:
                segment.sync()
        epochs.release()
    for segment in segments:
        segment.release_file()
    return LoadedLog(
        segments=segments,
        leader_epochs=epochs,
        log_start_offset=log_start_offset,
        log_end_offset=next_offset,
        recovery_point=next_offset if request.is_clean else min(request.recovery_point, next_offset),
        snapshots=snapshots,
        producers=producers,
    )


def _has_lost_aborted(request: LoadRequest, segments: list[Segment]) -> bool:
    """Return whether an index of aborted transactions has lost entries. Raises OSError."""
    lost = False
    for segment in segments:
        entries, crc = request.aborted.get(segment.base_offset, (0, 0))
        if entries and (segment.transaction_index is None or segment.transaction_index.crc_of(entries) != crc):
            request.warn("index of aborted transactions has changed, rebuilding it", segment=segment.path)
            lost = True
    return lost


def _restore_producers(
    request: LoadRequest,
    segments: list[Segment],
    snapshots: ProducerSnapshots,
    log_start_offset: int,
    log_end_offset: int,
    *,
    reads_all: bool,
) -> ProducerStates | None:
    """Return the producers; None if a snapshot at the log end offset has them, or the log is empty.

    ``reads_all``: use no snapshot, so that all indexes of aborted transactions are rebuilt.
    """
    if log_start_offset == log_end_offset or (request.is_clean and not reads_all and log_end_offset in snapshots.offsets):
        return None
    trusted_offset = log_end_offset if request.is_clean else request.recovery_point
    return restore(
        segments,
        snapshots,
        log_start_offset,
        -1 if reads_all else trusted_offset,
        log_end_offset,
        request.config,
        request.now_ms,
    )


def _find_segments(request: LoadRequest, names: Collection[str]) -> list[Segment]:
    """Return the segments that have a .log, ascending."""
    segments = []
    for base_offset in offsets_of(names, ".log"):
        log, index, time_index = (_size(request, names, base_offset, suffix) for suffix in _SUFFIXES)
        segment = Segment(
            request.file_system,
            request.directory,
            base_offset,
            request.config,
            request.now_ms,
            (log, index, time_index),
        )
        if f"{base_offset:020d}{_TRANSACTION_INDEX_SUFFIX}" in names:
            segment.open_transaction_index(_size(request, names, base_offset, _TRANSACTION_INDEX_SUFFIX))
        segments.append(segment)
    return segments


def _size(request: LoadRequest, names: Iterable[str], base_offset: int, suffix: str) -> int:
    if f"{base_offset:020d}{suffix}" not in names:
        return 0
    return request.file_system.size(segment_path(request.directory, base_offset, suffix))


def _recover(
    request: LoadRequest, segments: list[Segment], epochs: LeaderEpochs, names: Collection[str], *, knows_epochs: bool
) -> int:
    """Check the segments, and recover them if needed. Return the offset after the last batch of the log.

    Raises LogCorrupt, EpochsMisfit, OSError.
    """
    epochs.is_held = not knows_epochs
    next_offset = 0
    recovery_point = request.recovery_point if knows_epochs and not request.is_metadata else 0
    for number, segment in enumerate(segments):
        later = segments[number + 1 :]
        if number and not _adjoins(request, segments, number, next_offset):
            # A power loss has kept these segments, completely or in part, but lost the end of the previous segment.
            request.warn(
                "segments after a lost end removed",
                segment=segment.path,
                removed_bytes=sum(other.size for other in segments[number:]),
                next_offset=next_offset,
            )
            _remove(request, segments[number:])
            del segments[number:]
            break
        # A segment that ends at the recovery point may have got its last index entries after the flush.
        is_flushed = bool(later) and later[0].base_offset < recovery_point
        is_trusted = knows_epochs and (request.is_clean or is_flushed) and not request.is_metadata
        end = _checked_end(request, segment, names) if is_trusted else None
        if end is not None:
            ensure_epoch_of(end.last, epochs, request.log_start_offset)
            next_offset = end.next_offset
            segment.release_file()
            continue
        if not segment.size and _had_records(request, segment, names):
            request.warn("segment is empty, but had records", segment=segment.path)
        # A power loss may keep index entries but lose their records.
        if not (segment.size or segment.offset_index.entry_count or segment.time_index.entry_count):
            next_offset = segment.base_offset
            continue
        keeps_indexes = not is_trusted and _has_indexes(request, segment, names)
        next_offset = recover_segment(
            segment,
            recovery_point if keeps_indexes and not request.is_clean else 0,
            request.config,
            epochs,
            synced_offset=request.first_unsynced,
            is_last=not any(other.size for other in later),
            # A follower of a compacted leader also has gaps in its active segment.
            may_have_gaps=request.config.is_compacted or (bool(later) and segment.base_offset < (request.cleaned_offset or 0)),
            warn=request.warn,
        )
        segment.release_file()
    return next_offset


def _had_records(request: LoadRequest, segment: Segment, names: Collection[str]) -> bool:
    """Return whether an index shows that an empty segment had records: odradek creates the file with the first record.

    Kafka creates it with the segment, filled with zeros while it runs.
    """
    if f"{segment.base_offset:020d}{_SUFFIXES[1]}" not in names:
        return False
    return not request.may_lack_ends or segment.time_index.first()[0] > 0


def _adjoins(request: LoadRequest, segments: list[Segment], number: int, next_offset: int) -> bool:
    """Return whether a segment begins where the previous one ends. False if a power loss explains a difference.

    Raises LogCorrupt if synced records are missing.
    """
    segment, in_front = segments[number], segments[number - 1]
    if segment.base_offset == next_offset:
        return True
    if segment.base_offset > next_offset:
        # Compaction leaves gaps, also in a log that is no longer compacted, but not where records are appended.
        is_cleaned = request.config.is_compacted or in_front.base_offset < (request.cleaned_offset or 0)
        if request.may_lack_ends and is_cleaned and not _names_later(in_front, next_offset):
            return True
        if next_offset >= request.first_unsynced:
            return False
    raise LogCorrupt(f"the segment before {segment.path} ends at offset {next_offset}")


def _names_later(segment: Segment, next_offset: int) -> bool:
    """Return whether an index has an offset beyond the last batch of the .log, which has then lost its end."""
    time_index = segment.time_index
    last_named = segment.offset_index.last()[0] if segment.offset_index.entry_count else -1
    return max(last_named, time_index.last()[1] if time_index.entry_count else -1) >= next_offset


def _checked_end(request: LoadRequest, segment: Segment, names: Collection[str]) -> SegmentEnd | None:
    """Return the end of a segment that needs no recovery; None if its indexes must be rebuilt.

    Raises LogCorrupt, OSError.
    """
    if not segment.size and f"{segment.base_offset:020d}{_SUFFIXES[1]}" not in names:
        return SegmentEnd(segment.base_offset)
    if not _has_indexes(request, segment, names):
        request.warn("indexes missing or cut, rebuilding them", segment=segment.path)
        return None
    end = check_end(segment)
    if end.misfit and segment.size:
        request.warn("indexes do not match their segment, rebuilding them", segment=segment.path, reason=end.misfit)
        return None
    return end


def _has_indexes(request: LoadRequest, segment: Segment, names: Iterable[str]) -> bool:
    """Return whether both indexes exist and consist of whole entries."""
    for suffix, entry_bytes in zip(_SUFFIXES, _ENTRY_BYTES, strict=True):
        if f"{segment.base_offset:020d}{suffix}" not in names:
            return False
        if _size(request, names, segment.base_offset, suffix) % entry_bytes:
            return False
    return True


def _remove(request: LoadRequest, segments: Iterable[Segment]) -> None:
    """Remove segments, and sync their directory, so that they cannot reappear after newly appended records."""
    for segment in segments:
        for suffix in SEGMENT_SUFFIXES:
            path = segment_path(request.directory, segment.base_offset, suffix)
            if request.file_system.exists(path):
                request.file_system.remove(path)
    request.file_system.sync_dir(request.directory)
