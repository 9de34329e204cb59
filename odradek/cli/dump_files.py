"""The content of the files of a data directory, as entries: dicts with a ``kind``. Nothing is written, and no broker is needed.

    *.log, *.checkpoint              a ``batch`` for each batch, and a ``record`` for each of its records
    *.index, *.timeindex, *.txnindex an ``entry`` each
    *.snapshot                       a ``producer`` each
    *-checkpoint                     a ``line`` each
    partition.metadata, meta.properties, quorum-state, .kafka_cleanshutdown   one ``properties``

Records of the coordinators and of the metadata log are decoded, by the name of their directory. A damaged place becomes an entry
``damage``, after which the file cannot be read on.
"""

import json
from collections.abc import Callable, Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct
from typing import Any, Final

from odradek.cli.dump_records import RecordDecoder
from odradek.protocol.compression import CODEC_NAMES
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.record_batch import BatchHeader, ensure_intact, iter_batches
from odradek.protocol.records import read_records
from odradek.storage.directories.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    read_table,
)
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log import producer_restore, transaction_index
from odradek.storage.log.index import OffsetIndex, TimeIndex

Entry = dict[str, Any]

DAMAGE: Final = "damage"
_QUORUM_STATE: Final = "quorum-state"
_JSON_FILES: Final = frozenset({_QUORUM_STATE, CLEAN_SHUTDOWN_FILE})
_PROPERTY_FILES: Final = {META_PROPERTIES_FILE: "=", PARTITION_METADATA_FILE: ":"}
_SEGMENT_SUFFIXES: Final = frozenset({".log", ".checkpoint"})


def dumped_files(path: Path) -> list[Path]:
    """Return the files to dump: the path itself, or those of a directory that have a known form, not those of its directories."""
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.iterdir()) if file.is_file() and _is_known(file)]


def read_file(path: Path, decode: RecordDecoder, *, with_records: bool) -> Iterator[Entry]:
    """Yield the entries of a file. Raises OSError, and ValueError for a file of unknown form."""
    if path.suffix in _SEGMENT_SUFFIXES:
        yield from _segment(path, decode, with_records=with_records)
        return
    read = _reader_of(path)
    if read is None:
        raise ValueError(f"{path} is no segment, index, snapshot or checkpoint by its name")
    try:
        yield from read(path)
    except ValueError as error:
        yield {"kind": DAMAGE, "reason": str(error)}


def _is_known(path: Path) -> bool:
    return path.suffix in _SEGMENT_SUFFIXES or _reader_of(path) is not None


def _reader_of(path: Path) -> Callable[[Path], Iterator[Entry]] | None:
    if path.name in _JSON_FILES:
        return _json_file
    if path.name in _PROPERTY_FILES:
        return _properties
    if path.name.endswith("-checkpoint"):
        return _checkpoint
    return _BY_SUFFIX.get(path.suffix)


def _segment(path: Path, decode: RecordDecoder, *, with_records: bool) -> Iterator[Entry]:
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as mapped:
        # Copied out batch by batch: a view would keep the file mapped.
        end = 0
        try:
            with memoryview(mapped) as view:
                for position, header in iter_batches(view):
                    end = position + header.size_bytes
                    batch = bytes(view[position:end])
                    yield _batch(position, header)
                    ensure_intact(header, batch)
                    if with_records:
                        for record in read_records(batch):
                            yield {"kind": "record", **decode(record, is_control=header.is_control)}
        except (MalformedMessage, KafkaError) as error:
            yield {"kind": DAMAGE, "position": end, "reason": error.reason}
            return
        if end < len(mapped):
            yield {"kind": DAMAGE, "position": end, "reason": f"{len(mapped) - end} bytes of a batch that is not whole"}


def _batch(position: int, header: BatchHeader) -> Entry:
    codec = header.compression
    return {
        "kind": "batch",
        "position": position,
        "size_bytes": header.size_bytes,
        "magic": header.magic,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "leader_epoch": header.partition_leader_epoch,
        "compression": CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else codec,
        "timestamp_type": "LogAppendTime" if header.timestamp_type else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "crc": header.crc,
    }


def _offset_index(path: Path) -> Iterator[Entry]:
    base_offset = int(path.stem)
    for delta, position in _sparse_entries(path, OffsetIndex.entry):
        yield {"kind": "entry", "offset": base_offset + delta, "position": position}


def _time_index(path: Path) -> Iterator[Entry]:
    base_offset = int(path.stem)
    for timestamp, delta in _sparse_entries(path, TimeIndex.entry):
        yield {"kind": "entry", "timestamp": timestamp, "offset": base_offset + delta}


def _sparse_entries(path: Path, entry: Struct) -> Iterator[tuple[int, int]]:
    """Yield the fields of the entries of an index, up to the zeros with which Kafka preallocates an active one."""
    for number, fields in enumerate(entry.iter_unpack(_whole_entries(path, entry.size))):
        if number and not any(fields):
            return
        yield fields


def _transaction_index(path: Path) -> Iterator[Entry]:
    for fields in transaction_index.ENTRY.iter_unpack(_whole_entries(path, transaction_index.ENTRY.size)):
        yield {"kind": "entry", **transaction_index.AbortedTransaction(*fields[1:])._asdict()}


def _whole_entries(path: Path, size: int) -> bytes:
    """Return the entries of a file. Raises ValueError if there is a part of one."""
    data = path.read_bytes()
    if len(data) % size:
        raise ValueError(f"{len(data)} bytes are no whole number of entries of {size} bytes")
    return data


def _producers(path: Path) -> Iterator[Entry]:
    for producer_id, producer in producer_restore.decode(path.read_bytes()).by_id.items():
        last = producer.batches[-1] if producer.batches else None
        yield {
            "kind": "producer",
            "producer_id": producer_id,
            "epoch": producer.epoch,
            "last_sequence": producer.last_sequence,
            "last_offset": None if last is None else last.last_offset,
            "last_timestamp": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_start": producer.transaction_start if producer.transaction_start >= 0 else None,
        }


def _checkpoint(path: Path) -> Iterator[Entry]:
    if not path.stat().st_size:
        # Kafka makes empty ones when it starts.
        return
    columns = ("epoch", "start_offset") if path.name.startswith("leader-epoch") else ("topic", "partition", "offset")
    for row in read_table(RealFileSystem(), str(path)):
        values = [int(cell) if cell.isdecimal() else cell for cell in row]
        yield {"kind": "line", **dict(zip((*columns, "entries", "crc"), values, strict=False))}


def _json_file(path: Path) -> Iterator[Entry]:
    yield {"kind": "properties", **json.loads(path.read_bytes())}


def _properties(path: Path) -> Iterator[Entry]:
    separator = _PROPERTY_FILES[path.name]
    lines = [line.partition(separator) for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    yield {"kind": "properties", **{key.strip(): value.strip() for key, found, value in lines if found}}


_BY_SUFFIX: Final[dict[str, Callable[[Path], Iterator[Entry]]]] = {
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _producers,
}
