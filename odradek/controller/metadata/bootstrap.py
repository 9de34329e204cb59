"""``bootstrap.checkpoint``: the first records of a new metadata log, written beside the log by a format tool.

Kafka's ``kafka-storage.sh format`` writes one into the metadata directory, and so does ``odradek format``. It has the form of a
snapshot. Its feature levels are for Kafka; odradek begins with its own. Users' SCRAM credentials are taken over.
"""

from collections.abc import Sequence

from odradek.controller.metadata.features import BOOTSTRAP_RECORDS
from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.controller.metadata.snapshot_files import SnapshotFiles, SnapshotId
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records import MetadataRecord, decode
from odradek.storage.filesystem import FileSystem


class _Bootstrap(SnapshotId):
    """The file's place among the snapshots, without an offset."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "bootstrap.checkpoint"


_BOOTSTRAP = _Bootstrap(0, 0)


def write_bootstrap(file_system: FileSystem, directory: str, records: Sequence[MetadataRecord], now_ms: int) -> None:
    """Write the records that a new metadata log in ``directory`` begins with. Raises OSError."""
    files = SnapshotFiles(file_system, directory)
    files.write(_BOOTSTRAP, [*BOOTSTRAP_RECORDS, *records], (), contained_ms=now_ms, now_ms=now_ms)


def read_bootstrap(file_system: FileSystem, directory: str) -> list[MetadataRecord]:
    """Return the credentials that a new metadata log in ``directory`` begins with. Raises MetadataUnreadable, OSError."""
    if _BOOTSTRAP.name not in file_system.list_dir(directory):
        return []
    from odradek.protocol.metadata_records.security import UserScramCredentialRecord

    files = SnapshotFiles(file_system, directory)
    try:
        found = [
            decode(record.value or b"") for is_control, batch in files.read(_BOOTSTRAP) if not is_control for record in batch
        ]
    except MalformedMessage as error:
        raise MetadataUnreadable(files.path(_BOOTSTRAP), 0, error) from error
    return [record for record in found if isinstance(record, UserScramCredentialRecord)]
