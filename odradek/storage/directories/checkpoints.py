"""The small text files of a data directory, as Kafka writes them.

    recovery-point-offset-checkpoint, log-start-offset-checkpoint,
    cleaner-offset-checkpoint                                          version 0, a count, lines of "topic partition offset"
    aborted-transactions-checkpoint                                    odradek's own, version 0, a count, lines of
                                                                       "topic partition base-offset entries crc"
    <partition>/leader-epoch-checkpoint                                version 0, a count, lines of "epoch offset"
    <partition>/partition.metadata                                     "version: 0" and "topic_id: <URL-safe base64>"
    meta.properties                                                    Java properties: version, cluster.id, node.id, directory.id
    .kafka_cleanshutdown                                               JSON: version, brokerEpoch

An unreadable file raises ValueError, a missing one FileNotFoundError.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from sys import intern
from uuid import UUID

from odradek.protocol.texts import parse_uuid, uuid_text
from odradek.storage.filesystem import FileSystem

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
ABORTED_FILE = "aborted-transactions-checkpoint"
PARTITION_METADATA_FILE = "partition.metadata"
META_PROPERTIES_FILE = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
LOCK_FILE = ".lock"
DELETED_SUFFIX = "-delete"
FUTURE_SUFFIX = "-future"
_MAX_NAME_LENGTH = 255


def deleted_path(directory: str, unique: str) -> str:
    """Return the name of a partition's directory between its deletion and its removal; ``unique`` is a UUID in hex."""
    return _unique_path(directory, unique, DELETED_SUFFIX)


def future_path(directory: str, unique: str) -> str:
    """Return the name of a copy that is to replace a partition's directory."""
    return _unique_path(directory, unique, FUTURE_SUFFIX)


def _unique_path(directory: str, unique: str, suffix: str) -> str:
    parent, _, name = directory.rpartition("/")
    topic, _, partition = name.rpartition("-")
    suffix = f"-{partition}.{unique}{suffix}"
    return f"{parent}/{topic[: _MAX_NAME_LENGTH - len(suffix)]}{suffix}"


def read_table(file_system: FileSystem, path: str) -> list[list[str]]:
    """Return the lines after version and count, split at blanks."""
    text = file_system.read_bytes(path).decode()
    lines = text.splitlines()
    # Without its newline, the last number may be cut.
    if not text.endswith("\n") or len(lines) < 2 or lines[0] != "0" or int(lines[1]) != len(lines) - 2:
        raise ValueError(f"{path} is not an intact checkpoint of version 0")
    return [line.split() for line in lines[2:]]


def write_table(file_system: FileSystem, path: str, lines: Sequence[str], *, durable: bool) -> None:
    """Write a file for ``read_table``."""
    text = "\n".join(("0", str(len(lines)), *lines, ""))
    file_system.write_atomic(path, text.encode(), durable=durable)


def read_offsets(file_system: FileSystem, path: str) -> dict[tuple[str, int], int]:
    """Return (topic, partition) -> offset; empty if there is no file."""
    try:
        rows = read_table(file_system, path)
    except FileNotFoundError:
        return {}
    return {(intern(topic), int(partition)): int(offset) for topic, partition, offset in rows}


def write_offsets(file_system: FileSystem, path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Write and sync a file for ``read_offsets``."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    write_table(file_system, path, lines, durable=True)


Aborted = dict[tuple[str, int], dict[int, tuple[int, int]]]


def read_aborted(file_system: FileSystem, path: str) -> Aborted:
    """Return (topic, partition) -> base offset -> (entries, CRC) of a transaction index; empty without a file."""
    found: Aborted = {}
    with suppress(FileNotFoundError):
        for topic, partition, base_offset, entries, crc in read_table(file_system, path):
            found.setdefault((topic, int(partition)), {})[int(base_offset)] = int(entries), int(crc)
    return found


def write_aborted(file_system: FileSystem, path: str, aborted: Aborted) -> None:
    """Write a file for ``read_aborted``. Not synced: a start with an outdated file reads some logs."""
    lines = [
        f"{topic} {partition} {base_offset} {entries} {crc}"
        for (topic, partition), segments in aborted.items()
        for base_offset, (entries, crc) in segments.items()
    ]
    write_table(file_system, path, lines, durable=False)


def _parse_properties(text: str, separator: str) -> dict[str, str]:
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition(separator) for line in lines if line and not line.startswith("#")]
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_topic_id(file_system: FileSystem, directory: str) -> UUID | None:
    """Return the topic id in ``partition.metadata``; None if there is no such file."""
    try:
        data = file_system.read_bytes(f"{directory}/{PARTITION_METADATA_FILE}")
    except FileNotFoundError:
        return None
    fields = _parse_properties(data.decode(), ":")
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError(f"{directory}/{PARTITION_METADATA_FILE} does not have version 0")
    return parse_uuid(fields["topic_id"])


def write_topic_id(file_system: FileSystem, directory: str, topic_id: UUID) -> None:
    """Write ``partition.metadata``. Not synced: the metadata log has the topic id, and a start recreates a lost directory."""
    data = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    file_system.write_atomic(f"{directory}/{PARTITION_METADATA_FILE}", data.encode(), durable=False)


def read_meta_properties(file_system: FileSystem, directory: str) -> dict[str, str] | None:
    """Return the properties of ``meta.properties``; None if there is no such file."""
    try:
        data = file_system.read_bytes(f"{directory}/{META_PROPERTIES_FILE}")
    except FileNotFoundError:
        return None
    return _parse_properties(data.decode(), "=")


def write_meta_properties(file_system: FileSystem, directory: str, properties: Iterable[tuple[str, str]]) -> None:
    """Write a file for ``read_meta_properties``."""
    text = "".join(f"{key}={value}\n" for key, value in properties)
    file_system.write_atomic(f"{directory}/{META_PROPERTIES_FILE}", text.encode())
