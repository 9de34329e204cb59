"""What is known of a log before its directory is read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from odradek.storage.filesystem import FileSystem
from odradek.storage.log_config import LogConfig
from odradek.storage.recovery import Warn

MAX_OFFSET: Final = 2**63 - 1


class LoadRequest(NamedTuple):
    """What is known of a log before its directory is read. The offsets are those of the checkpoint files.

    Offsets that no file has are 0; ``cleaned_offset``, up to where the log was compacted, is None then. ``clean_end_offset`` is
    where a clean stop has left the log, if that is known. ``is_metadata``: of the metadata log every batch is checked, and
    snapshots tell where it starts. ``may_lack_ends``: Kafka may have compacted the log, and dropped the last batch of a
    segment. ``aborted``: by base offset, how many aborted transactions segments had, and the CRC of that index.
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
        """Readable records below this offset were synced, and must be there; 0 if there are none.

        Kafka moves the recovery point up with the log start offset, though the records in front may never have been synced: a
        power loss may bring removed records back, torn.
        """
        return self.recovery_point if self.recovery_point > self.log_start_offset else 0

    @property
    def first_unsynced(self) -> int:
        """Data is cut off, as a loss of power may leave it, from this offset on; below it is damaged. All, after a clean stop."""
        return MAX_OFFSET if self.is_clean else self.synced_offset
