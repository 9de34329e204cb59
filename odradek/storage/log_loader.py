"""Opening a log's directory: finding its segments, recovering those that need it, and where the log starts and ends.

Left out: splitting segments that Kafka of before 2.0 let overflow.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import FileSystem
from odradek.storage.interrupted_swap import finish_swaps
from odradek.storage.leader_epochs import LeaderEpochs
from odradek.storage.log_config import LogConfig
from odradek.storage.producer_restore import restore
from odradek.storage.producer_snapshot import ProducerSnapshots
from odradek.storage.producer_state import ProducerStates
from odradek.storage.recovery import Warn, recover_segment
from odradek.storage.segment import Segment, segment_path
from odradek.storage.segment_removal import remove_leftovers

_LOG_SUFFIX = ".log"
_OFFSET_DIGITS = 20
_SUFFIXES = (".log", ".index", ".timeindex")
_TRANSACTION_INDEX_SUFFIX = ".txnindex"
_ENTRY_BYTES = (1, 8, 12)


class LoadRequest(NamedTuple):
    """What is known of a log before its directory is read. The offsets are those of the checkpoint files.

    Offsets that no file has are 0; ``cleaned_offset``, up to where the log was compacted, is None then.
    """

    file_system: FileSystem
    directory: str
    config: LogConfig
    recovery_point: int
    log_start_offset: int
    cleaned_offset: int | None
    is_clean: bool
    now_ms: int
    warn: Warn

    @property
    def synced_offset(self) -> int:
        """Readable records below this offset were synced, and must be there; 0 if there are none.

        Kafka moves the recovery point up with the log start offset, though the records in front may never have been synced: a
        power loss may bring removed records back, torn.
        """
        return self.recovery_point if self.recovery_point > self.log_start_offset else 0


class LoadedLog(NamedTuple):
    """A log as it was opened; ``segments`` ascend, and there is at least one.

    ``producers`` is None if a snapshot at the log end offset has them, or the log is empty: they are loaded when needed.
    """

    segments: list[Segment]
    leader_epochs: LeaderEpochs
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    snapshots: ProducerSnapshots
    producers: ProducerStates | None


def load(request: LoadRequest) -> LoadedLog:
    """Read a log's directory, recover what was not flushed, and create a segment if there is none.

    Raises LogCorrupt, OSError.
    """
    found = set(request.file_system.list_dir(request.directory))
    found = finish_swaps(request.file_system, request.directory, found, request.warn)
    names = remove_leftovers(request.file_system, request.directory, found, request.log_start_offset)
    epochs = LeaderEpochs(request.file_system, request.directory)
    knows_epochs = epochs.load()
    segments = _find_segments(request, names)
    recovery_point = request.recovery_point
    if not knows_epochs and any(segment.size for segment in segments):
        request.warn("leader epochs not readable, taking them from the log", directory=request.directory)
        recovery_point = 0
        epochs.is_held = True
    next_offset = _recover(request, segments, epochs, recovery_point, names, knows_epochs=knows_epochs)
    log_start_offset = max(request.log_start_offset, segments[0].base_offset if segments else 0)
    if max(next_offset, log_start_offset) < request.synced_offset and any(segment.size for segment in segments):
        raise LogCorrupt(f"{segments[-1].path} ends with offset {next_offset}, and was synced up to {request.recovery_point}")
    if segments and next_offset < log_start_offset:
        request.warn(
            "log ends before it starts, beginning anew",
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
    for segment in segments:
        segment.forget_aborted_from(next_offset, is_sound=request.is_clean)
    segments[-1].learn_max_timestamp()
    snapshots = ProducerSnapshots(request.file_system, request.directory, names, request.warn)
    snapshots.keep_only([segment.base_offset for segment in segments], log_start_offset, next_offset)
    producers = _restore_producers(request, segments, snapshots, log_start_offset, next_offset)
    if epochs.is_held:
        # Indexes in front of the recovery point were rebuilt. They are synced first: a start without epochs rebuilds them again.
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


def _restore_producers(
    request: LoadRequest, segments: list[Segment], snapshots: ProducerSnapshots, log_start_offset: int, log_end_offset: int
) -> ProducerStates | None:
    """The producers; None if a snapshot at the log end offset has them, or the log is empty."""
    if log_start_offset == log_end_offset or (request.is_clean and log_end_offset in snapshots.offsets):
        return None
    trusted_offset = log_end_offset if request.is_clean else request.recovery_point
    producers = restore(segments, snapshots, log_start_offset, trusted_offset, log_end_offset)
    producers.expire(request.now_ms, request.config.producer_id_expiration_ms)
    return producers


def _find_segments(request: LoadRequest, names: Collection[str]) -> list[Segment]:
    """The segments that have a .log, ascending."""
    stems = [name.removesuffix(_LOG_SUFFIX) for name in names if name.endswith(_LOG_SUFFIX)]
    offsets = sorted(int(stem) for stem in stems if len(stem) == _OFFSET_DIGITS and stem.isdecimal())
    segments = []
    for base_offset in offsets:
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
    request: LoadRequest,
    segments: list[Segment],
    epochs: LeaderEpochs,
    recovery_point: int,
    names: Iterable[str],
    *,
    knows_epochs: bool,
) -> int:
    """Recover the segments that need it; returns the offset behind the last batch of the log."""
    next_offset = 0
    cleaned_offset = request.cleaned_offset or 0
    for number, segment in enumerate(segments):
        later = segments[number + 1 :]
        is_adjoining = segment.base_offset == next_offset
        # Compaction leaves gaps, in a log that is not compacted any more too; but not where records are written.
        in_front = segments[number - 1].base_offset if number else 0
        may_have_gaps = request.config.is_compacted or in_front < cleaned_offset
        if number and segment.base_offset > next_offset >= request.synced_offset and not may_have_gaps:
            # A power loss has kept these segments, whole or in part, and lost the end of the segment in front of them.
            request.warn(
                "segments behind a lost end removed",
                segment=segment.path,
                removed_bytes=sum(other.size for other in segments[number:]),
                next_offset=next_offset,
            )
            _remove(request, segments[number:])
            del segments[number:]
            break
        if number and not is_adjoining and (segment.base_offset < next_offset or not may_have_gaps):
            raise LogCorrupt(f"the segment in front of {segment.path} ends with offset {next_offset}")
        # A segment that ends at the recovery point may have got its last index entries after the flush.
        is_flushed = bool(later) and later[0].base_offset < recovery_point
        has_indexes = not segment.size or _has_indexes(request, segment, names)
        if knows_epochs and has_indexes and (request.is_clean or is_flushed):
            next_offset = later[0].base_offset if later else segment.next_offset()
            continue
        # A power loss may keep index entries and lose their records.
        if not (segment.size or segment.offset_index.entry_count or segment.time_index.entry_count):
            next_offset = segment.base_offset
            continue
        trusted_offset = recovery_point if has_indexes and not request.is_clean else 0
        is_last = not any(other.size for other in later)
        next_offset = recover_segment(
            segment,
            trusted_offset,
            request.config,
            epochs,
            synced_offset=request.synced_offset,
            is_last=is_last,
            # A follower of a compacted leader has gaps in its active segment, too.
            may_have_gaps=request.config.is_compacted or (bool(later) and segment.base_offset < cleaned_offset),
            warn=request.warn,
        )
        segment.release_file()
    return next_offset


def _has_indexes(request: LoadRequest, segment: Segment, names: Iterable[str]) -> bool:
    """Whether both indexes exist and consist of whole entries."""
    for suffix, entry_bytes in zip(_SUFFIXES, _ENTRY_BYTES, strict=True):
        if f"{segment.base_offset:020d}{suffix}" not in names:
            return False
        if _size(request, names, segment.base_offset, suffix) % entry_bytes:
            return False
    return True


def _remove(request: LoadRequest, segments: Iterable[Segment]) -> None:
    for segment in segments:
        for suffix in (*_SUFFIXES, _TRANSACTION_INDEX_SUFFIX):
            path = segment_path(request.directory, segment.base_offset, suffix)
            if request.file_system.exists(path):
                request.file_system.remove(path)
