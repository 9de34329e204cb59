"""Whether the quorum of a metadata log has its voters in the log (KIP-853), of a broker that does not run. Only reads.

A log that ``kafka-storage.sh format --standalone`` has begun has a record of its voters, in its first snapshot or in the log. Any
other one is told its voters by ``controller.quorum.voters``.
"""

from odradek.broker.metadata.snapshot_files import SUFFIX
from odradek.broker.metadata.topic_names import CLUSTER_METADATA_TOPIC
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.quorum_records import KRAFT_VOTERS, control_type
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import read_records
from odradek.storage.filesystem import FileSystem


def has_voters(file_system: FileSystem, metadata_dir: str) -> bool:
    """Whether the log in ``metadata_dir``, or its newest snapshot, has a record of voters. Raises OSError."""
    directory = f"{metadata_dir}/{CLUSTER_METADATA_TOPIC}-0"
    if not file_system.exists(directory):
        return False
    names = sorted(file_system.list_dir(directory))
    snapshots = [name for name in names if name.endswith(SUFFIX)][-1:]
    segments = [name for name in names if name.endswith(".log")]
    return any(_has_voters(file_system.read_bytes(f"{directory}/{name}")) for name in (*snapshots, *segments))


def _has_voters(data: bytes) -> bool:
    """Whether the voters are named before the first damaged batch, which the next start reports."""
    try:
        return any(
            control_type(record) == KRAFT_VOTERS
            for position, header in iter_batches(data)
            if header.is_control
            for record in read_records(data, position)
        )
    except MalformedMessage:
        return False
