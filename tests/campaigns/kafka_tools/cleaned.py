"""Compares two directories that odradek and Apache Kafka cleaned from the same logs, partition by partition.

    records   offset, key, value, timestamp and headers of each, as read_uncommitted reads them and as read_committed, which
              omits records that the .txnindex marks as aborted
    batches   of each batch with records: offsets, epochs, producer, sequence, codec, timestamps, and its delete horizon, if any:
              the former one, or ``delete.retention.ms`` after the time of the clean; markers too
    empty     batches that only keep a producer's last sequence number: the same
    segments  the same base offsets, aborted transactions, producers, ends

Three things may differ, since no reader depends on them: the base timestamp of a rebuilt batch, the compression ratio, and the
place of empty batches. odradek ends each cleaned segment with one if necessary, Kafka each clean
(``interrupted_swap``). odradek gives such a batch no timestamp. Kafka does, and has it in the .timeindex, which its
own DumpLogSegments reports as an error.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.protocol.record_batch import BatchHeader, ensure_intact, iter_batches
from odradek.protocol.records import read_records
from odradek.storage.cleaning.batch_filter import DELETE_HORIZON_MASK
from odradek.storage.log.log import Log
from tests.campaigns.kafka_tools import compaction_workload as workload
from tests.campaigns.kafka_tools.opened import open_log
from tests.storage.cleaner.support import batches_of, read_committed, records_of

_SHOWN = 300


@dataclass(slots=True)
class CleanedComparison:
    """The number of comparisons, and the differences."""

    partitions: int = 0
    records: int = 0
    records_before: int = 0
    batches: int = 0
    empty_batches: int = 0
    horizons: int = 0
    markers: int = 0
    consumed_records: int = 0
    consumed_offsets: int = 0
    shards: int = 0
    dumped_files: int = 0
    differences: list[str] = field(default_factory=list)

    def expect(self, where: Path, what: str, ours: object, theirs: object) -> None:
        """Note a difference unless the two are equal."""
        self.expect_same(f"{where.name}: {what}", ours, theirs)

    def expect_same(self, what: str, ours: Any, theirs: Any) -> None:
        """The same; for two lists the first difference is named."""
        if ours == theirs:
            return
        if isinstance(ours, list) and isinstance(theirs, list):
            at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1)
            what += f": {len(ours)} and {len(theirs)}, at {at}"
            ours, theirs = ours[at : at + 1], theirs[at : at + 1]
        self.differences.append(f"{what}: odradek {str(ours)[:_SHOWN]}, Kafka {str(theirs)[:_SHOWN]}")


@dataclass(frozen=True, slots=True)
class Side:
    """A data directory, and the time of its clean, in ms since the epoch."""

    data: Path
    began_ms: int
    ended_ms: int


def compare_cleaned(comparison: CleanedComparison, ours: Side, theirs: Side, *, before: Path) -> None:
    """Compare all compacted topics; ``before`` is the directory that both were cleaned from."""
    for topic, count in workload.PARTITIONS.items():
        for number in range(count):
            name = f"{topic}-{number}"
            headers = list(_headers(before / name))
            comparison.records_before += sum(header.record_count for header in headers)
            _compare_partition(comparison, name, ours, theirs, _horizons(headers))


def _compare_partition(comparison: CleanedComparison, name: str, ours: Side, theirs: Side, horizons: Mapping[int, int]) -> None:
    """``horizons`` are those before the clean, by base offset."""
    comparison.partitions += 1
    directories = [side.data / name for side in (ours, theirs)]
    comparison.expect_same(f"{name}: segments", *([file.name for file in _segments(each)] for each in directories))
    logs = [open_log(directory, clean=True, warnings=[]) for directory in directories]
    read = [records_of(log) for log in logs]
    comparison.records += len(read[0])
    comparison.expect_same(f"{name}: records", *read)
    comparison.expect_same(f"{name}: committed records", *map(read_committed, logs))
    comparison.expect_same(f"{name}: aborted transactions", *map(_aborted, logs))
    comparison.expect_same(f"{name}: log end", *(log.log_end_offset for log in logs))
    comparison.expect_same(f"{name}: producers", *(_producers(log) for log in logs))
    found = [batches_of(log) for log in logs]
    full = [[_told(header, batch) for header, batch in batches if header.record_count] for batches in found]
    comparison.batches += len(full[0])
    comparison.expect_same(f"{name}: batches", *full)
    _compare_empty(comparison, name, [[header for header, _ in batches] for batches in found], ours.data / name)
    for side, batches in zip((ours, theirs), found, strict=True):
        _check_horizons(comparison, name, side, horizons, _horizons([header for header, _ in batches]))
    comparison.markers += sum(header.is_control and header.record_count > 0 for header, _ in found[0])
    for log in logs:
        log.close(clean=False, now_ms=0)


def _told(header: BatchHeader, batch: bytes) -> dict[str, object]:
    """The properties of a batch in which the cleaners must agree; compressed sizes depend on the codec's implementation."""
    ensure_intact(header, batch)
    told = header._asdict()
    del told["batch_length"], told["crc"]
    if header.attributes & DELETE_HORIZON_MASK or header.record_count <= header.last_offset_delta:
        del told["base_timestamp"]
    if header.is_control:
        told["marker"] = list(read_records(batch))
    return told


def _compare_empty(comparison: CleanedComparison, name: str, headers: list[list[BatchHeader]], ours: Path) -> None:
    empty = [{header.base_offset: header for header in side if not header.record_count} for side in headers]
    last_ones = {int(file.stem) for file in _segments(ours)[1:]}
    for base_offset, header in list(empty[0].items()):
        if header.next_offset in last_ones:
            del empty[0][base_offset]
            empty[1].pop(base_offset, None)
    comparison.empty_batches += len(empty[0])
    comparison.expect_same(f"{name}: empty batches", list(empty[0].values()), list(empty[1].values()))


def _horizons(headers: Iterable[BatchHeader]) -> dict[int, int]:
    """Base offset -> delete horizon of the batches that have one."""
    return {header.base_offset: header.base_timestamp for header in headers if header.attributes & DELETE_HORIZON_MASK}


def _check_horizons(
    comparison: CleanedComparison, name: str, side: Side, before: Mapping[int, int], found: Mapping[int, int]
) -> None:
    retention_ms = workload.retention_ms(name.rpartition("-")[0])
    comparison.horizons += len(found)
    wrong = [
        (base_offset, horizon_ms)
        for base_offset, horizon_ms in found.items()
        if before.get(base_offset, horizon_ms) != horizon_ms
        or (base_offset not in before and not side.began_ms <= horizon_ms - retention_ms <= side.ended_ms)
    ]
    comparison.expect_same(f"{side.data}/{name}: delete horizons", wrong, [])


def _aborted(log: Log) -> list[tuple[int, ...]]:
    return sorted(log.segments.aborted_transactions(log.log_start_offset, log.log_end_offset))


def _producers(log: Log) -> dict[int, tuple[int, int, int]]:
    return {each: (state.epoch, state.last_sequence, state.transaction_start) for each, state in log.producers.by_id.items()}


def _segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def _headers(directory: Path) -> Iterator[BatchHeader]:
    for file in _segments(directory):
        for _, header in iter_batches(file.read_bytes()):
            yield header
