"""The checkpoint files of all data directories.

They hold each log's start offset, synced offset and compacted offset; in a cluster also its replicated offset.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from odradek.storage.directories import checkpoints
from odradek.storage.directories.data_directories import DataDirectories
from odradek.storage.directories.data_directory import METADATA_LOG, OFFSET_FILES, DataDirectory, Partition
from odradek.storage.errors import is_directory_failure
from odradek.storage.log.log import Log

# The number of logs handled without a pause: a millisecond or two.
_TOGETHER: Final = 500


def aborted_of(log: Log) -> dict[int, tuple[int, int]]:
    """Return entries and CRC of the indexes of aborted transactions, by base offset."""
    return {
        segment.base_offset: segment.transaction_index.fingerprint()
        for segment in log.segments
        if segment.transaction_index is not None
    }


class OffsetCheckpoints:
    """Writes the offsets of ``logs``. A file is written only if it changes."""

    def __init__(
        self,
        directories: DataDirectories,
        logs: Mapping[Partition, Log],
        offline: Mapping[Partition, str],
        fail: Callable[[DataDirectory, str], None],
    ) -> None:
        """Take ``fail``, which takes a directory offline for a reason."""
        self._directories = directories
        self._logs = logs
        self._offline = offline
        self._fail = fail
        # The synced offset of the metadata log, which the controller syncs itself. A start checks that the log is complete up to
        # it.
        self.metadata_synced: Callable[[], int] | None = None
        # Returns the high watermark of a partition. A single broker has none: there it is the log's end.
        self.high_watermark_of: Callable[[Partition], int | None] | None = None
        # True if log start offsets could not be written, although segments before them may have been renamed.
        self.lack_starts = False

    def replicated_offset(self, key: Partition) -> int | None:
        """Return the offset below which a log is replicated; None if the broker has no cluster."""
        return None if self.high_watermark_of is None else self.high_watermark_of(key)

    def write(self) -> None:
        """Write all files but the compacted offsets. Raises OSError."""
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Do ``write`` in steps of some milliseconds, so that other work can run in between. Raises OSError."""
        yield from self._write_aborted()
        # In this order, and without a pause: a recovery point may have moved up to a new log start offset.
        self.write_start_offsets()
        self._write(checkpoints.RECOVERY_POINT_FILE, lambda log: log.recovery_point, self.metadata_synced)
        self.write_high_watermarks()

    def write_high_watermarks(self) -> None:
        """Write the replicated offsets. Raises OSError."""
        high_watermark_of = self.high_watermark_of
        if high_watermark_of is not None:
            self._write(checkpoints.HIGH_WATERMARK_FILE, lambda log: high_watermark_of(log.topic_partition))

    def write_start_offsets(self) -> None:
        """Write log start offsets. Raises OSError.

        Kafka leaves out a log that starts at a segment's beginning. Here the file distinguishes a removed segment from a lost
        one.
        """
        self.lack_starts = True
        self._write(checkpoints.LOG_START_FILE, lambda log: log.log_start_offset or None)
        self.lack_starts = False

    def write_cleaned_offsets(self) -> None:
        """Write the compacted offsets. Raises OSError."""
        for _ in self._write_aborted():
            pass
        self._write(checkpoints.CLEANER_OFFSET_FILE, lambda log: log.cleaned_offset)

    def _write_aborted(self) -> Iterator[None]:
        """Write entries and CRCs of the transaction indexes, in steps: Kafka takes a missing index for an empty one."""
        aborted: dict[str, checkpoints.Aborted] = {
            directory.path: {key: found for key in self._offline if (found := directory.aborted.get(key))}
            for directory in self._directories.online
        }
        for place, (key, log) in enumerate(list(self._logs.items()), 1):
            if place % _TOGETHER == 0:
                yield None
            if self._logs.get(key) is not log:
                continue
            found = aborted_of(log)
            held = aborted.get(log.directory.rpartition("/")[0])
            if found and held is not None:
                held[key] = found
        for directory in self._directories.online:
            # Another log may have taken the place of a log deleted meanwhile.
            held = {key: found for key, found in aborted[directory.path].items() if key in self._logs or key in self._offline}
            directory.write_aborted(held)

    def lower(self, key: Partition, offset: int) -> None:
        """Lower one log's larger offsets in the files to ``offset``, before the log is truncated. Raises OSError."""
        directory = self._directories.with_path(self._logs[key].directory.rpartition("/")[0])
        for name in OFFSET_FILES:
            held = directory.held_offset(name, key)
            if held is not None and held > offset:
                directory.note_offset(name, key, offset)

    def _write(self, name: str, offset_of: Callable[[Log], int | None], metadata_offset: Callable[[], int] | None = None) -> None:
        # Offline logs keep the offset that the file has.
        offsets = {directory.path: directory.held_of(name, self._offline) for directory in self._directories.online}
        for key, log in self._logs.items():
            offset = offset_of(log)
            if offset is not None:
                held = offsets.get(log.directory.rpartition("/")[0])
                if held is not None:
                    held[key] = offset
        if metadata_offset is not None and self._directories.metadata.path in offsets:
            offsets[self._directories.metadata.path][METADATA_LOG] = metadata_offset()
        failure: OSError | None = None
        for directory in self._directories.online:
            try:
                directory.write_offsets(name, offsets[directory.path])
            except OSError as error:
                failure = error
                if is_directory_failure(error):
                    self._fail(directory, str(error))
        if failure is not None:
            raise failure
