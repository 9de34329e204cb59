"""Opens a directory of Apache Kafka's with odradek's log, and compares: ``Comparison`` counts files, and names every difference.

Each partition's directory is copied twice. One copy is opened as after Kafka's clean stop. The other is opened without its
indexes, snapshots and epochs, as after the worst stop, so that odradek rebuilds them:

    .log                     every batch read through the log is the one in the file, intact, and ends at Kafka's end offset
    .index, .timeindex       odradek's are Kafka's, byte for byte, but for an entry of the first batch with which odradek begins a
                             time index; every entry of Kafka's names an existing batch
    .txnindex                odradek's is Kafka's, byte for byte
    .snapshot                odradek's state of each producer, rebuilt from the log, is that in Kafka's
    leader-epoch-checkpoint  the same table, unless compaction has removed the batch that began an epoch
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

from odradek.protocol.record_batch import BatchHeader, ensure_intact, iter_batches
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log import producer_restore
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig

_INDEX_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")
_DERIVED = (".index", ".timeindex", ".txnindex", ".snapshot")
_EPOCHS = "leader-epoch-checkpoint"
_NOW_MS = 1_700_000_000_000
_KEEP_PRODUCERS_MS = 2**62


@dataclass(slots=True)
class Comparison:
    """The compared files by kind, and the differences."""

    files: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    batches: int = 0
    entries: int = 0

    def file(self, path: Path) -> None:
        """Count one more."""
        kind = path.suffix or path.name
        self.files[kind] = self.files.get(kind, 0) + 1

    def expect(self, path: Path, what: str, ours: object, theirs: object) -> None:
        """Note a difference unless the two are equal."""
        if ours != theirs:
            self.differences.append(f"{path.parent.name}/{path.name}: {what}: odradek {ours!r}, Kafka {theirs!r}")


def compare(data: Path, scratch: Path) -> Comparison:
    """Compare all partitions in Kafka's data directory, except its ``.deleted`` files."""
    comparison = Comparison()
    for original in sorted(data.glob("*-*/")):
        if not any(file.stat().st_size for file in original.glob("*.log")):
            continue
        clean, bare = (scratch / kind / original.name for kind in ("clean", "bare"))
        for copy in (clean, bare):
            shutil.copytree(original, copy, ignore=shutil.ignore_patterns("*.deleted"))
        for file in bare.iterdir():
            if file.suffix in _DERIVED or file.name == _EPOCHS:
                file.unlink()
        _compare_as_stopped(comparison, clean)
        _compare_made_anew(comparison, clean, bare)
    return comparison


def open_log(directory: Path, *, clean: bool, warnings: list[str]) -> Log:
    """The log in ``directory``, which may have been compacted."""
    topic, _, partition = directory.name.rpartition("-")
    config = LogConfig(cleanup_policy=("compact",), producer_id_expiration_ms=_KEEP_PRODUCERS_MS)
    return Log.open(
        RealFileSystem(),
        str(directory),
        topic,
        int(partition),
        config,
        clean=clean,
        now_ms=_NOW_MS,
        warn=lambda event, **what: warnings.append(f"{event} {what}"),
    )


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def _batches(file: Path) -> Iterator[tuple[int, BatchHeader]]:
    return iter_batches(file.read_bytes())


def _compare_as_stopped(comparison: Comparison, directory: Path) -> None:
    warnings: list[str] = []
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    log = open_log(directory, clean=True, warnings=warnings)
    last_offsets = []
    for file in _segments(directory):
        comparison.file(file)
        data = before[file.name]
        for position, header in iter_batches(data):
            ensure_intact(header, data[position : position + header.size_bytes])
            found = log.read(header.base_offset, 1, upper_offset=log.log_end_offset, min_one_batch=True)
            read = b"" if found is None else found.read()
            comparison.expect(file, f"the batch at {position}", read, data[position : position + header.size_bytes])
            comparison.batches += 1
            last_offsets.append(header.last_offset)
        _compare_index_entries(comparison, file)
    snapshots = sorted(directory.glob("*.snapshot"))
    comparison.expect(directory / "log", "the end", log.log_end_offset, int(snapshots[-1].stem) if snapshots else None)
    comparison.expect(directory / "log", "warnings", warnings, [])
    _compare_producers(comparison, snapshots[-1], log)
    log.close(clean=True, now_ms=_NOW_MS)
    after = {file.name: file.read_bytes() for file in directory.iterdir()}
    comparison.expect(directory / "log", "files changed by opening", [n for n in before if before[n] != after.get(n)], [])


def _compare_index_entries(comparison: Comparison, file: Path) -> None:
    """Check that every entry of Kafka's indexes of one segment names an existing batch."""
    base_offset = int(file.stem)
    by_position = dict(_batches(file))
    index = file.with_suffix(".index")
    for relative, position in _INDEX_ENTRY.iter_unpack(index.read_bytes()):
        header = by_position.get(position)
        comparison.expect(index, f"position {position}", header and header.last_offset, base_offset + relative)
        comparison.entries += 1
    time_index = file.with_suffix(".timeindex")
    for timestamp, relative in _TIME_ENTRY.iter_unpack(time_index.read_bytes()):
        upto = [header for header in by_position.values() if header.last_offset <= base_offset + relative]
        ours = max((header.max_timestamp for header in upto), default=None)
        comparison.expect(time_index, f"timestamp {timestamp}", ours, timestamp)
        comparison.entries += 1


def _compare_producers(comparison: Comparison, snapshot: Path, log: Log) -> None:
    comparison.file(snapshot)
    theirs = producer_restore.decode(snapshot.read_bytes())
    for kind, by_id in (("of Kafka's", theirs.by_id), ("of odradek's", log.producers.by_id)):
        for producer_id in by_id:
            ours, there = log.producers.by_id.get(producer_id), theirs.by_id.get(producer_id)
            comparison.expect(snapshot, f"producer {producer_id} {kind}", _told(ours), _told(there))
    comparison.expect(snapshot, "open transactions", log.producers.open_transactions, theirs.open_transactions)


def _told(producer: object) -> object:
    if producer is None:
        return None
    last = producer.batches[-1] if producer.batches else None
    return (
        producer.epoch,
        producer.last_sequence,
        last and (last.first_offset, last.last_offset),
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_start,
    )


def _compare_made_anew(comparison: Comparison, kafkas: Path, bare: Path) -> None:
    log = open_log(bare, clean=False, warnings=[])
    snapshots = sorted(kafkas.glob("*.snapshot"))
    _compare_producers(comparison, snapshots[-1], log)
    log.close(clean=True, now_ms=_NOW_MS)
    begins_late = log.leader_epochs.epoch_for(log.log_start_offset) < 0
    for file in sorted(kafkas.iterdir()):
        if file.suffix in (".index", ".timeindex", ".txnindex") or (file.name == _EPOCHS and not begins_late):
            comparison.file(file)
            ours = bare / file.name
            data = ours.read_bytes() if ours.exists() else b""
            if file.suffix == ".timeindex" and data and data != file.read_bytes():
                data = without_the_first_batch(ours, data)
            comparison.expect(file, "made anew", data.hex(), file.read_bytes().hex())


def without_the_first_batch(index: Path, data: bytes) -> bytes:
    """A time index without the entry of the first batch, if it begins with that."""
    timestamp, relative = _TIME_ENTRY.unpack_from(data)
    _, first = next(_batches(index.with_suffix(".log")))
    is_first = (timestamp, relative) == (first.max_timestamp, first.last_offset - int(index.stem))
    return data[_TIME_ENTRY.size :] if is_first else data
