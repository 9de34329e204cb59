"""Checks of a log's files at its opening: no synced data is missing, and no file belongs to another log.

If a kill or a loss of power cannot explain a finding, the start raises LogCorrupt before it has changed any file.

``LoadRequest`` has the facts known of a log before its directory is read.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, BatchHeader, read_header
from odradek.storage.errors import LogCorrupt
from odradek.storage.filesystem import FileSystem
from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.segment import Segment, offsets_of
from odradek.storage.recovery.recovery import Warn

MAX_OFFSET: Final = 2**63 - 1


class LoadRequest(NamedTuple):
    """The facts known of a log before its directory is read. The offsets are those of the checkpoint files.

    Offsets missing in the files are 0; ``cleaned_offset``, up to which the log was compacted, is None then. ``clean_end_offset``
    is the log's end at a clean stop, if known. ``is_metadata``: every batch of the metadata log is checked, and its start comes
    from snapshots. ``may_lack_ends``: Kafka may have compacted the log, and dropped the last batch of a segment. ``aborted``: by
    base offset, the number of aborted transactions in segments, and the CRC of that index.
    """

    file_system: FileSystem
    directory: str
    topic_partition: tuple[str, int]
    config: LogConfig
    recovery_point: int
    log_start_offset: int
    cleaned_offset: int | None
    is_clean: bool
    now_ms: int
    warn: Warn
    clean_end_offset: int | None = None
    is_metadata: bool = False
    may_lack_ends: bool = True
    aborted: Mapping[int, tuple[int, int]] = MappingProxyType({})

    @property
    def synced_offset(self) -> int:
        """Return the offset below which readable records were synced and must exist; 0 if there are none.

        Kafka moves the recovery point up with the log start offset, although earlier records may never have been synced. A power
        loss may bring removed records back, torn.
        """
        return self.recovery_point if self.recovery_point > self.log_start_offset else 0

    @property
    def first_unsynced(self) -> int:
        """Return the offset from which bad data may be cut off, as after a power loss. Bad data below it is damage.

        After a clean stop all bad data is damage.
        """
        return MAX_OFFSET if self.is_clean else self.synced_offset


class EpochsMisfit(Exception):
    """``leader-epoch-checkpoint`` contradicts the log: the epochs must be taken from the batches."""


def warn_of_lost_segments(directory: str, names: Collection[str], log_start_offset: int, warn: Warn) -> None:
    """Warn of indexes without a .log, which a start removes. A kill during a compaction also leaves some."""
    logs = offsets_of(names, ".log")
    lost = {offset for suffix in (".index", ".timeindex") for offset in offsets_of(names, suffix)}
    lost = {offset for offset in lost - set(logs) if offset >= log_start_offset}
    if lost:
        warn("indexes without their .log removed", directory=directory, segments=sorted(lost))


def ensure_first_segment(request: LoadRequest, names: Collection[str], epochs: LeaderEpochs) -> None:
    """Raise LogCorrupt if the first segments are missing. Raises OSError.

    Before odradek removes a segment, the log start offset is on disk, or the removed segment exists under another name. In the
    second case the leader epochs are made to begin with the first segment, as these names are removed next. Kafka writes the log
    start offset later, but its leader epochs begin where the log does.
    """
    offsets = offsets_of(names, ".log")
    if not offsets or offsets[0] <= request.log_start_offset:
        return
    if any(offset < offsets[0] for offset in offsets_of(names, ".log.deleted")):
        epochs.truncate_from_start(offsets[0])
        epochs.sync()
        return
    if epochs.entries and epochs.entries[0][1] < offsets[0]:
        raise LogCorrupt(
            f"{request.directory}: the first segment begins at offset {offsets[0]}, but the log at "
            f"{max(request.log_start_offset, epochs.entries[0][1])}: segments are missing"
        )


def ensure_epochs_begin(request: LoadRequest, segments: Sequence[Segment], epochs: LeaderEpochs) -> None:
    """Raise EpochsMisfit if the first epoch begins after the log's start, where that is known. Raises OSError."""
    if not any(segment.size for segment in segments) or not epochs.entries:
        return
    begins = max(request.log_start_offset, segments[0].base_offset)
    if request.log_start_offset and epochs.entries[0][1] > begins and not _begins_without_epoch(segments):
        raise EpochsMisfit(f"they begin at offset {epochs.entries[0][1]}, but the log at {begins}")


def _begins_without_epoch(segments: Sequence[Segment]) -> bool:
    """Return True if the first message is of format v0 or v1, so that no epoch begins at the log's start. Raises OSError."""
    first = next((segment for segment in segments if segment.size), None)
    if first is None:
        return False
    try:
        return read_header(first.file.pread(HEADER_SIZE, 0)).partition_leader_epoch < 0
    except MalformedMessage:
        return False
    finally:
        first.release_file()


def ensure_epochs_begin_below(end_offset: int, epochs: LeaderEpochs) -> None:
    """Raise EpochsMisfit if the first epoch begins after the log's end."""
    if epochs.entries and epochs.entries[0][1] > end_offset:
        raise EpochsMisfit(f"they begin at offset {epochs.entries[0][1]}, but the log ends at {end_offset}")


def ensure_epoch_of(batch: BatchHeader | None, epochs: LeaderEpochs, log_start_offset: int) -> None:
    """Raise EpochsMisfit if ``batch``, a segment's last, has another epoch than the epochs give its offset.

    Batches before the log's start do not count, as their records are removed.
    """
    if batch is None or batch.partition_leader_epoch < 0:
        return
    begins = log_start_offset or (epochs.entries[0][1] if epochs.entries else 0)
    known = epochs.epoch_for(batch.last_offset)
    if batch.last_offset >= begins and known != batch.partition_leader_epoch:
        raise EpochsMisfit(f"offset {batch.last_offset} has epoch {batch.partition_leader_epoch}, not {known}")


def found_start(request: LoadRequest, segments: Sequence[Segment], epochs: LeaderEpochs, next_offset: int) -> int:
    """Return the log start offset: from the checkpoint file, else the leader epochs; at least the first segment's offset.

    Leader epochs are not used for a log that is or was compacted: they may come from its batches, and the first ones may be gone.
    They are not used either if the log begins with messages of format v0 or v1, which have no epoch.
    """
    first = segments[0].base_offset if segments else 0
    is_compacted = request.config.is_compacted or request.cleaned_offset is not None
    if request.log_start_offset or request.is_metadata or is_compacted or not epochs.entries:
        return max(request.log_start_offset, first)
    begins = epochs.entries[0][1]
    if not first < begins <= next_offset or _begins_without_epoch(segments):
        return first
    request.warn("log start offset not recorded, taking it from the leader epochs", directory=request.directory, offset=begins)
    return begins


def ensure_end(request: LoadRequest, segments: Sequence[Segment], end_offset: int) -> None:
    """Raise LogCorrupt if the log does not end where it must."""
    path = segments[-1].path if segments else f"{request.directory}: there is no segment; the log"
    if request.clean_end_offset is not None and end_offset != request.clean_end_offset:
        raise LogCorrupt(f"{path} ends at offset {end_offset}, but a clean stop left it at {request.clean_end_offset}")
    if end_offset < request.synced_offset:
        raise LogCorrupt(f"{path} ends at offset {end_offset}, but was synced up to {request.recovery_point}")
