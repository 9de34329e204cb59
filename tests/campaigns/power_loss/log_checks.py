"""Invariants of one partition's log, whatever happened to its disk: it is read in all possible ways, which must agree.

The batches are the reference: each must have been written at its offset, and must follow the one before. Indexes, leader
epochs, producers and aborted transactions are compared with the batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.control_records import ABORT, read_control_record
from odradek.protocol.record_batch import BatchHeader, ensure_intact, iter_batches
from odradek.protocol.records import read_records
from odradek.storage.log.log_lookup import LongLookup
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.protocol.records import Record
    from odradek.storage.log.log import Log
    from odradek.storage.log.log_lookup import TimestampOffset

_GARBAGE = "what is read is what was written"
_READ = "a log is read alike by offset, by time and from its beginning"
_EPOCHS = "leader epochs are those of the batches"
_KEYS = "the last record of each key stays"
_PRODUCERS = "producers and transactions are those of the batches"


class Batch(NamedTuple):
    """A complete batch of a log."""

    header: BatchHeader
    data: bytes


class Aborted(NamedTuple):
    """A transaction that an abort marker ended."""

    producer_id: int
    first_offset: int
    last_offset: int


class Producers(NamedTuple):
    """The batches' producers: id -> (epoch, last sequence, first offset of the open transaction); and aborted transactions."""

    by_id: dict[int, tuple[int, int, int]]
    aborted: list[Aborted]


def read_batches(log: Log, written: Mapping[int, set[bytes]] | None) -> list[Batch]:
    """All batches of a log, which must be consecutive. If ``written`` is known, each must have been written at its offset."""
    batches: list[Batch] = []
    next_offset = None
    for segment in log.segments:
        data = segment.file.pread(segment.size, 0)
        if len(data) != segment.size:
            raise Violation(_GARBAGE, f"{segment.path} has {len(data)} bytes, not {segment.size}")
        may_have_gap = log.config.is_compacted and next_offset is not None and segment.base_offset > next_offset
        if next_offset not in (None, segment.base_offset) and not may_have_gap:
            raise Violation(_GARBAGE, f"{segment.path} follows on offset {next_offset}")
        next_offset = segment.base_offset
        for position, header in iter_batches(data) if data else ():
            batch = data[position : position + header.size_bytes]
            ensure_intact(header, batch)
            is_gap = log.config.is_compacted and header.base_offset > next_offset
            if header.base_offset != next_offset and not is_gap:
                raise Violation(_GARBAGE, f"{segment.path}: offset {header.base_offset} follows on {next_offset}")
            if written is not None and batch not in written.get(header.base_offset, ()):
                raise Violation(_GARBAGE, f"{segment.path}: nobody wrote this at offset {header.base_offset}: {batch!r}")
            batches.append(Batch(header, batch))
            next_offset = header.next_offset
    if next_offset != log.log_end_offset:
        raise Violation(_GARBAGE, f"{log.directory} ends at {log.log_end_offset}, its batches at {next_offset}")
    if not log.segments.first_offset <= log.log_start_offset <= log.log_end_offset:
        raise Violation(_GARBAGE, f"{log.directory} starts at {log.log_start_offset}, and has batches from {batches[:1]} on")
    return batches


def check_reads(log: Log, batches: list[Batch]) -> None:
    """Check that each record is found by its offset and by its timestamp."""
    end = log.log_end_offset
    visible = [batch for batch in batches if batch.header.next_offset > log.log_start_offset]
    for header, data in visible:
        for offset in {max(header.base_offset, log.log_start_offset), header.last_offset}:
            found = log.read(offset, 1, upper_offset=end, min_one_batch=True)
            if found is None or found.read() != data:
                raise Violation(_READ, f"{log.directory}: offset {offset} is not found as {data!r}")
    for target in {header.max_timestamp for header, _ in visible}:
        answer = _offset_for_timestamp(log, target)
        expected = _first_from(visible, target, log.log_start_offset)
        if (None if answer is None else answer.offset) != expected:
            raise Violation(_READ, f"{log.directory}: from {target} on is at {answer}, and should be at {expected}")


def _offset_for_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """``Log.offset_for_timestamp``, with the batches that take long looked through as well."""
    from_offset = 0
    while True:
        try:
            return log.offset_for_timestamp(timestamp, from_offset)
        except LongLookup as lookup:
            found = lookup.run(lambda: None)
            if found is not None:
                return found
            from_offset = lookup.next_offset


def _first_from(batches: list[Batch], timestamp: int, start_offset: int) -> int | None:
    """The offset of the first record from ``start_offset`` on that is not older. Compaction may have removed any record."""
    for header, data in batches:
        if header.max_timestamp >= timestamp:
            for record in read_records(data):
                if record.offset >= start_offset and record.timestamp >= timestamp:
                    return record.offset
    return None


def check_epochs(log: Log, batches: list[Batch]) -> None:
    """Check the start offset of each leader epoch."""
    known = [entry for entry in log.leader_epochs.entries if entry[1] < log.log_end_offset]
    for header, _ in batches:
        # If the log begins after deleted records, the first epoch begins after them.
        if header.base_offset >= max(log.log_start_offset, known[0][1] if known else 0):
            said = log.leader_epochs.epoch_for(header.base_offset)
            # Unknown if both the start of this epoch and the end of the one before were lost with the log's start.
            if said not in (header.partition_leader_epoch, -1):
                raise Violation(_EPOCHS, f"{log.directory}: {known}, and offset {header.base_offset} is of another")


def producers_of(batches: list[Batch]) -> Producers:
    """The state that follows from reading all batches."""
    by_id: dict[int, tuple[int, int, int]] = {}
    aborted = []
    for header, data in batches:
        producer_id = header.producer_id
        if producer_id < 0:
            continue
        epoch, last_sequence, start = by_id.get(producer_id, (header.producer_epoch, -1, -1))
        if epoch != header.producer_epoch:
            last_sequence = -1
        if header.is_control:
            if start >= 0 and _is_abort(data):
                aborted.append(Aborted(producer_id, start, header.last_offset))
            start = -1
        else:
            last_sequence = header.last_sequence if header.base_sequence >= 0 else -1
            if header.is_transactional and start < 0:
                start = header.base_offset
        by_id[producer_id] = header.producer_epoch, last_sequence, start
    return Producers(by_id, aborted)


def _is_abort(data: bytes) -> bool:
    return read_control_record(next(iter(read_records(data))))[0] == ABORT


def check_producers(log: Log, batches: list[Batch]) -> Producers:
    """Check epochs, sequence numbers and transactions of producers that still have records in the log."""
    start = log.log_start_offset
    visible = [batch for batch in batches if batch.header.next_offset > start]
    expected = producers_of(batches)
    known = log.producers
    later = producers_of(visible)
    for producer_id in later.by_id:
        epoch, last_sequence, transaction_start = expected.by_id[producer_id]
        found = known.by_id.get(producer_id)
        if found is None:
            raise Violation(_PRODUCERS, f"{log.directory}: producer {producer_id} is not known")
        found_start = max(found.transaction_start, start) if found.transaction_start >= 0 else -1
        expected_start = max(transaction_start, start) if transaction_start >= 0 else -1
        said = found.epoch, found.last_sequence, found_start
        if said != (epoch, last_sequence, expected_start):
            raise Violation(
                _PRODUCERS, f"{log.directory}: producer {producer_id} is {said}, not {(epoch, last_sequence, expected_start)}"
            )
    _check_aborted(log, expected.aborted, later.aborted, batches)
    return expected


def _abort_markers(batches: list[Batch]) -> list[tuple[int, int]]:
    """Producer id and offset of each."""
    return [
        (header.producer_id, header.last_offset)
        for header, data in batches
        if header.is_control and header.record_count and _is_abort(data)
    ]


def _check_aborted(log: Log, aborted: list[Aborted], visible: list[Aborted], batches: list[Batch]) -> None:
    start = log.log_start_offset
    said = {
        (each.producer_id, max(each.first_offset, start), each.last_offset)
        for each in log.segments.aborted_transactions(start, log.log_end_offset)
    }
    # A transaction without records behind the log start offset need not be known.
    needed = {tuple(each) for each in visible if each.last_offset >= start}
    allowed = {(each.producer_id, max(each.first_offset, start), each.last_offset) for each in aborted}
    told = {(producer_id, last_offset) for producer_id, _, last_offset in said}
    # Nor need the start of a transaction be known whose records are all before the log start offset.
    markers = _abort_markers(batches)
    allowed |= {(producer_id, start, offset) for producer_id, offset in markers}
    if log.config.is_compacted:
        # Aborted records are compacted away before their marker.
        allowed |= {each for each in said if (each[0], each[2]) in markers}
    if not said <= allowed or any((producer_id, last_offset) not in told for producer_id, _, last_offset in needed):
        raise Violation(_PRODUCERS, f"{log.directory}: aborted are {sorted(said)}, and should be {sorted(needed)}")


def check_log(log: Log, written: Mapping[int, set[bytes]] | None) -> list[Batch]:
    """Check everything about a log."""
    batches = read_batches(log, written)
    check_reads(log, batches)
    check_epochs(log, batches)
    check_producers(log, batches)
    return batches


def check_keys(log: Log, keyed: Mapping[bytes, list[tuple[int, bool]]], kept: int, written: Mapping[int, set[bytes]]) -> None:
    """For each key of a compacted log: the last promised record below ``kept``, or a later one, is there.

    If the last is a tombstone past its retention, no record of the key may be there, since an old value would be served. That
    tombstone is promised, or it was written and its producer was not told so (REQUEST_TIMED_OUT).
    """
    # Others' transactions may be open in front of them; the keys of transactions are not promised.
    found = {record.key or b"": record.offset for record in _records(log)}
    for key, records in keyed.items():
        promised = [record for record in records if record[0] < kept]
        if not promised:
            continue
        offset, deletes = promised[-1]
        if key not in found and (deletes or _has_tombstone(written, key, offset, log.log_end_offset)):
            continue
        if found.get(key, -1) < offset:
            raise Violation(_KEYS, f"{log.directory}: of {key!r} the last is at {found.get(key)}, not at {offset}")


def _has_tombstone(written: Mapping[int, set[bytes]], key: bytes, after_offset: int, end_offset: int) -> bool:
    """Whether a tombstone of ``key`` was written between these offsets."""
    return any(
        record.key == key and record.value is None and after_offset < record.offset < end_offset
        for batches in written.values()
        for batch in batches
        for _, header in iter_batches(batch)
        if not header.is_control
        for record in read_records(batch)
    )


def _records(log: Log) -> Iterator[Record]:
    for segment in log.segments:
        data = segment.file.pread(segment.size, 0)
        for position, header in iter_batches(data) if data else ():
            if not header.is_control:
                yield from read_records(data, position)


def committed_values(log: Log) -> Iterator[bytes]:
    """The values that a read_committed consumer gets."""
    return (record.value or b"" for record in committed_records(log))


def committed_records(log: Log) -> Iterator[Record]:
    """The records that a read_committed consumer gets."""
    data = b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)
    unstable = log.first_unstable_offset
    upper_offset = log.log_end_offset if unstable is None else unstable
    aborted = sorted(log.aborted_transactions(log.log_start_offset, upper_offset), key=lambda each: each[1])
    aborting: set[int] = set()
    for position, header in iter_batches(data) if data else ():
        if header.next_offset <= log.log_start_offset or header.base_offset >= upper_offset:
            continue
        while aborted and aborted[0][1] <= header.last_offset:
            aborting.add(aborted.pop(0)[0])
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in aborting:
            # DeleteRecords may have cut the batch in two, and with it an open transaction.
            yield from (each for each in read_records(data, position) if log.log_start_offset <= each.offset < upper_offset)
