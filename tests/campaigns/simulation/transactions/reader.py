"""A read_committed consumer's view of a partition: the records up to the last stable offset, without aborted ones.

Like a client it uses the aborted transactions in each response, and keeps none for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.control_records import ABORT, read_control_record
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterator

    from odradek.protocol.record_batch import BatchHeader
    from tests.campaigns.simulation.transactions.witness import SeenPartition

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
