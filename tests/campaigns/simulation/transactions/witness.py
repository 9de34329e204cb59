"""Who looks at each batch as it is appended, whoever wrote it, to partitions, ``__consumer_offsets`` and ``__transaction_state``.

It keeps what there has to be, from the logs' bytes alone: open transactions, what readers of committed records are to see,
offsets that are pending and committed. What it finds wrong it raises from ``check``, as the broker takes some exceptions for
its own.

A read_committed consumer's view of a partition: the records up to the last stable offset, without aborted ones.

Like a client it uses the aborted transactions in each response, and keeps none for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue, decode_key, decode_value
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record
from tests.campaigns.simulation.transactions.ledger import Fates
from tests.campaigns.simulation.transactions.membership import NO_OFFSET, Memberships
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.protocol.record_batch import BatchHeader
    from tests.campaigns.simulation.transactions.ledger import Incarnation


_COMMITTED = "who reads committed records reads all of them, and no others"


def committed_records(data: bytes, aborted: deque[tuple[int, int]]) -> Iterator[tuple[BatchHeader, list[tuple[int, bytes]]]]:
    """Each batch with (offset, value) of its records; with none if it is a marker's, or of an aborted transaction."""
    aborting: set[int] = set()
    for position, header in iter_batches(data):
        records: list[tuple[int, bytes]] = []
        while aborted and aborted[0][1] <= header.last_offset:
            aborting.add(aborted.popleft()[0])
        if header.is_control:
            _, key, value = next(read_batch(data, position))
            if read_control_record(Record(key=key, value=value))[0] == ABORT:
                aborting.discard(header.producer_id)
        elif header.producer_id not in aborting:
            records = [(offset, value or b"") for offset, _, value in read_batch(data, position)]
        yield header, records


class CommittedReader:
    """The consumer of one partition until its deletion. ``values`` has everything read."""

    def __init__(self) -> None:
        self.offset = 0
        self.values: list[tuple[int, bytes]] = []

    def take(self, data: bytes, aborted: deque[tuple[int, int]]) -> None:
        """Take what was fetched: batches, and (producer id, first offset) of aborted transactions in order. Raises Violation."""
        before = self.offset
        for header, records in committed_records(data, aborted):
            self.values += [record for record in records if record[0] >= self.offset]
            self.offset = header.next_offset
        if self.offset == before:
            raise Violation(_COMMITTED, f"no batch can be read at {before}")

    def check(self, seen: SeenPartition) -> None:
        """Compare with the committed records in the log. Raises Violation."""
        expected = seen.committed(self.offset)
        if self.values != expected:
            differing = [(a, b) for a, b in zip(self.values, expected, strict=False) if a != b][:1]
            what = f"{seen.name} up to {self.offset}: {len(self.values)} records are read, {len(expected)} are committed"
            raise Violation(_COMMITTED, f"{what}; {differing or (self.values + expected)[-1:]}")


_READ_BYTES = 1 << 20


class Span:
    """One producer's transaction on one partition. ``is_commit`` is None while it is open."""

    __slots__ = ("epoch", "first_offset", "is_commit")

    def __init__(self, epoch: int, first_offset: int) -> None:
        self.epoch = epoch
        self.first_offset = first_offset
        self.is_commit: bool | None = None


class SeenPartition:
    """What was appended to one partition, from its creation to its deletion. ``records`` are (offset, value, transaction)."""

    def __init__(self, name: tuple[str, int], topic_id: UUID) -> None:
        self.name = name
        self.topic_id = topic_id
        self.end_offset = 0
        self.open: dict[int, Span] = {}
        # (offset of the marker, transaction) of those that had ended above the high watermark when somebody looked last.
        self.ended: list[tuple[int, Span]] = []
        self.records: list[tuple[int, bytes, Span]] = []

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not below ``high_watermark``."""
        self.ended = [(marker, span) for marker, span in self.ended if marker >= high_watermark]
        unstable = [*self.open.values(), *(span for _, span in self.ended)]
        return min((span.first_offset for span in unstable), default=None)

    def committed(self, up_to: int) -> list[tuple[int, bytes]]:
        """(offset, value) of the committed records below ``up_to``, at or below the last stable offset."""
        return [(offset, value) for offset, value, span in self.records if offset < up_to and span.is_commit]


class SeenOffsets:
    """The offsets of one partition of ``__consumer_offsets``: (offset in the log, value) of each."""

    def __init__(self) -> None:
        self.committed: dict[OffsetCommitKey, tuple[int, OffsetCommitValue]] = {}
        self.pending: dict[int, dict[OffsetCommitKey, tuple[int, OffsetCommitValue]]] = {}
        # The offset itself -> whether its transaction was committed.
        self.fates: dict[int, bool] = {}
        # Those that a tombstone, or a later one of the same transaction, took back while they were pending.
        self.taken_back: set[int] = set()

    def note(self, at_offset: int, producer_id: int | None, key_bytes: bytes, value_bytes: bytes | None) -> None:
        """A record; ``producer_id`` is None outside of transactions."""
        key = decode_key(key_bytes)
        if not isinstance(key, OffsetCommitKey):
            return
        value = decode_value(key, value_bytes)
        if not isinstance(value, OffsetCommitValue):
            self.committed.pop(key, None)
            for pending in self.pending.values():
                if key in pending:
                    self.taken_back.add(pending.pop(key)[1].offset)
        elif producer_id is None:
            self.committed[key] = at_offset, value
        else:
            pending = self.pending.setdefault(producer_id, {})
            if key in pending:
                self.taken_back.add(pending[key][1].offset)
            pending[key] = at_offset, value

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """A marker."""
        for key, (at_offset, value) in self.pending.pop(producer_id, {}).items():
            self.fates[value.offset] = is_commit
            if is_commit and at_offset > self.committed.get(key, (-1,))[0]:
                self.committed[key] = at_offset, value

    def pending_keys(self) -> set[OffsetCommitKey]:
        """What some open transaction is about to commit."""
        return {key for pending in self.pending.values() for key in pending}


class Witness:
    """``partitions`` are those there are; ``places`` are where a value was appended, by the value; ``touched`` are the partitions
    that were appended to since somebody emptied it.
    """

    def __init__(self, note: Callable[..., None], *, may_lag: bool) -> None:
        """``may_lag``: high watermarks may be behind the logs' ends."""
        self.fates = Fates(may_lag=may_lag)
        self.partitions: dict[tuple[str, int], SeenPartition] = {}
        self.offsets: dict[int, SeenOffsets] = {}
        self.members = Memberships()
        self.places: dict[bytes, list[Incarnation]] = {}
        self.touched: dict[tuple[str, int], None] = {}
        self.violation: Violation | None = None
        self._note = note

    def observe(self, partition: Partition) -> None:
        """Look at what is new in ``partition``."""
        try:
            self._observe(partition)
        except Violation as violation:
            self.violation = self.violation or violation

    def check(self) -> None:
        """Raise the first Violation there was."""
        if self.violation is not None:
            raise self.violation

    def forget_deleted(self, partitions: Partitions) -> None:
        """Those that are not among ``partitions`` any more, or are of another topic of the same name."""
        for name, seen in list(self.partitions.items()):
            partition = partitions.get(*name)
            if partition is None or partition.topic_id != seen.topic_id:
                del self.partitions[name]
                self.fates.need_no_marker(name)

    def _observe(self, partition: Partition) -> None:
        log = partition.log
        if log is None:
            return
        name = partition.topic, partition.index
        seen = self.partitions.get(name)
        if seen is None:
            seen = self.partitions[name] = SeenPartition(name, partition.topic_id)
            self.fates.need_no_marker(name)
        end_offset = log.log_end_offset
        if seen.topic_id != partition.topic_id or end_offset < seen.end_offset:
            raise Violation("what was appended stays", f"{name} ended at {seen.end_offset}, and ends at {end_offset}")
        self.touched[name] = None
        while seen.end_offset < end_offset:
            found = log.read(seen.end_offset, _READ_BYTES, upper_offset=end_offset, min_one_batch=True)
            if found is None:
                raise Violation("what was appended stays", f"nothing is found at {seen.end_offset} of {name}")
            data = found.read()
            for position, header in iter_batches(data):
                if header.base_offset != seen.end_offset:
                    raise Violation("what was appended stays", f"{header} is at {seen.end_offset} of {name}")
                self._note_batch(seen, header, data, position)
                seen.end_offset = header.next_offset

    def _note_batch(self, seen: SeenPartition, header: BatchHeader, data: bytes, position: int) -> None:
        topic = seen.name[0]
        if header.is_control:
            self._note_marker(seen, header, data, position)
        elif topic == TRANSACTION_STATE_TOPIC:
            for _, key, value in read_batch(data, position):
                self._note_state(key or b"", value)
        elif topic == CONSUMER_OFFSETS_TOPIC and not header.is_transactional:
            offsets = self.offsets_of(seen.name[1])
            for offset, key, value in read_batch(data, position):
                offsets.note(offset, None, key or b"", value)
                self.members.note(key or b"", value)
        else:
            self._note_write(seen, header, data, position)

    def _note_write(self, seen: SeenPartition, header: BatchHeader, data: bytes, position: int) -> None:
        producer_id = header.producer_id
        epoch = header.producer_epoch
        span = seen.open.get(producer_id)
        is_open_here = span is not None and span.epoch == epoch
        self.fates.check_write(seen.name, producer_id, epoch, is_open_here=is_open_here)
        self._note("%s-%s: %s takes a batch of producer %s, epoch %s", *seen.name, header.base_offset, producer_id, epoch)
        if span is None:
            span = seen.open[producer_id] = Span(epoch, header.base_offset)
        if seen.name[0] == CONSUMER_OFFSETS_TOPIC:
            offsets = self.offsets_of(seen.name[1])
            for offset, key, value in read_batch(data, position):
                offsets.note(offset, producer_id, key or b"", value)
                self.members.check_write(key or b"", value)
            return
        incarnation = seen.topic_id, seen.name[1]
        for offset, _, value in read_batch(data, position):
            seen.records.append((offset, value or b"", span))
            places = self.places.setdefault(value or b"", [])
            if incarnation in places:
                raise Violation("nothing is appended twice", f"{value!r} is at {offset} of {seen.name}")
            places.append(incarnation)

    def _note_marker(self, seen: SeenPartition, header: BatchHeader, data: bytes, position: int) -> None:
        _, key, content = next(read_batch(data, position))
        kind, coordinator_epoch = read_control_record(Record(key=key, value=content))
        is_commit = kind == COMMIT
        producer_id = header.producer_id
        span = seen.open.get(producer_id)
        kind_name = "commit" if is_commit else "abort"
        self._note(
            "%s-%s: %s takes a marker of producer %s, epoch %s: %s",
            *seen.name,
            header.base_offset,
            producer_id,
            header.producer_epoch,
            kind_name,
        )
        self.fates.check_marker(seen.name, producer_id, header.producer_epoch, is_commit=is_commit, ends=span is not None)
        self.fates.of_producer[producer_id].coordinator_epoch = coordinator_epoch
        if span is not None:
            span.is_commit = is_commit
            del seen.open[producer_id]
            seen.ended.append((header.base_offset, span))
        if seen.name[0] == CONSUMER_OFFSETS_TOPIC:
            offsets = self.offsets_of(seen.name[1])
            for pending, (_, value) in offsets.pending.get(producer_id, {}).items() if is_commit else ():
                before = offsets.committed.get(pending)
                self.members.check_commit(pending, value.offset, NO_OFFSET if before is None else before[1].offset)
            offsets.end(producer_id, is_commit=is_commit)

    def _note_state(self, key: bytes, value: bytes | None) -> None:
        completed = self.fates.note_record(key, value)
        if completed is None:
            return
        open_on = [name for name, seen in self.partitions.items() if completed.producer_id in seen.open]
        missing = sorted(completed.missing & self.partitions.keys())
        if missing or open_on:
            what = f"{completed.transactional_id}: no marker is on {missing}, it is open on {open_on}"
            raise Violation("a transaction is complete when all its partitions have markers", what)

    def offsets_of(self, index: int) -> SeenOffsets:
        """Of one partition of ``__consumer_offsets``."""
        return self.offsets.setdefault(index, SeenOffsets())
