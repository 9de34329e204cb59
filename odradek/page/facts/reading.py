"""Reads a topic's partitions by Fetch, forward and back, with everything that a consumer is not shown.

Each stretch is fetched twice at most: with read_committed, which says what is aborted, and beyond the last stable offset with
read_uncommitted. Batches are decoded one at a time, a millisecond's worth of records at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from odradek.client.api import ClientError, RequestRefused
from odradek.client.apis import EARLIEST_TIMESTAMP, FETCH, LATEST_TIMESTAMP
from odradek.page.facts.source import Denied, ask_nodes, described_topic, is_denied, leaders_of, list_offsets, reason_of
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.fetched_batches import fetched_batches
from odradek.protocol.message_types.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.records import read_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.page.facts.source import Source
    from odradek.protocol.message_types.fetch import PartitionData
    from odradek.protocol.record_batch import BatchHeader, Buffer
    from odradek.protocol.records import Record

_READ_COMMITTED: Final = 1
_READ_UNCOMMITTED: Final = 0
_RESPONSE_BYTES: Final = 16 * 1024 * 1024
# A larger batch is decompressed in a thread.
_SMALL_BATCH_BYTES: Final = 64 * 1024
# The records that are read at once, in a millisecond.
_RECORDS_AT_ONCE: Final = 200


class Mark(StrEnum):
    """The kind of a record. CONTROL has no key and value of a producer.

    OPEN: readers with read_committed do not get it yet, because its transaction or an older one has not ended.
    """

    PLAIN = ""
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    CONTROL = "control"


class RawRecord(NamedTuple):
    """A record with its partition, its mark, and its batch's header."""

    partition: int
    record: Record
    mark: Mark
    header: BatchHeader


class _Batch(NamedTuple):
    """A batch at a position of ``data``."""

    data: Buffer
    position: int
    header: BatchHeader
    mark: Mark


class Bounds(NamedTuple):
    """The partitions of a topic: leaders, first offsets and end offsets. ``unread`` has the reasons of those without."""

    leaders: dict[int, int]
    starts: dict[int, int]
    ends: dict[int, int]
    unread: dict[int, str]


async def bounds_of(source: Source, topic: str, partitions: Iterable[int] | None = None) -> Bounds:
    """Return the bounds of all or of these partitions. Raises Missing, Denied, Unavailable."""
    leaders = leaders_of([await described_topic(source, topic)])
    wanted = sorted(index for _, index in leaders) if partitions is None else sorted(set(partitions))
    keys = [(topic, index) for index in wanted]
    starts, ends = await asyncio.gather(
        list_offsets(source, dict.fromkeys(keys, EARLIEST_TIMESTAMP), leaders),
        list_offsets(source, dict.fromkeys(keys, LATEST_TIMESTAMP), leaders),
    )
    unread = {
        index: "there is no such partition" if (topic, index) not in leaders else "its leader does not answer"
        for topic, index in keys
        if (topic, index) not in starts or (topic, index) not in ends
    }
    read = [key for key in keys if key[1] not in unread]
    return Bounds(
        {index: leaders[topic, index] for topic, index in read},
        {index: starts[topic, index] for topic, index in read},
        {index: ends[topic, index] for topic, index in read},
        unread,
    )


class TopicReader:
    """Fetches the partitions of one topic. ``unread`` gets the reasons of partitions that cannot be read."""

    def __init__(self, source: Source, topic: str, bounds: Bounds) -> None:
        self._source = source
        self._topic = topic
        self.bounds = bounds
        self.unread = dict(bounds.unread)
        # The last stable offsets, by the last answers.
        self._stable: dict[int, int] = {}

    def raise_if_denied(self) -> None:
        """Raise Denied if no partition could be read, for lack of an ACL."""
        denied = [reason for reason in self.unread.values() if "AUTHORIZATION_FAILED" in reason]
        if denied and len(self.unread) == len(self.bounds.unread) + len(self.bounds.ends):
            raise Denied(denied[0])

    async def fetch(self, positions: Mapping[int, int], partition_bytes: int) -> dict[int, deque[_Batch]]:
        """Return the batches from each position on, of at most so many bytes; none at the end, and none if it cannot be read."""
        found = await self._fetch_all(positions, partition_bytes, _READ_COMMITTED)
        # At or beyond the last stable offset there is nothing for read_committed.
        rest = {
            index: offset
            for index, offset in positions.items()
            if index not in self.unread and not found.get(index) and offset < self.bounds.ends[index]
        }
        return found | (await self._fetch_all(rest, partition_bytes, _READ_UNCOMMITTED) if rest else {})

    async def _fetch_all(
        self, positions: Mapping[int, int], partition_bytes: int, isolation_level: int
    ) -> dict[int, deque[_Batch]]:
        """Fetch all at once, and then one by one those whose first batch was too large to be sent with others (KIP-74)."""
        found = await self._fetch(positions, partition_bytes, isolation_level)
        if len(positions) > 1:
            for index, offset in positions.items():
                end = self._stable.get(index, 0) if isolation_level == _READ_COMMITTED else self.bounds.ends[index]
                if index not in self.unread and not found.get(index) and offset < end:
                    found |= await self._fetch({index: offset}, partition_bytes, isolation_level)
        return found

    async def _fetch(self, positions: Mapping[int, int], partition_bytes: int, isolation_level: int) -> dict[int, deque[_Batch]]:
        by_leader: dict[int, list[FetchPartition]] = {}
        for index, offset in positions.items():
            asked = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_bytes)
            by_leader.setdefault(self.bounds.leaders[index], []).append(asked)
        requests = {
            leader: FetchRequest(
                max_bytes=_RESPONSE_BYTES,
                isolation_level=isolation_level,
                topics=[FetchTopic(topic=self._topic, partitions=rows)],
            )
            for leader, rows in by_leader.items()
        }
        answers, silent = await ask_nodes(self._source, FETCH, requests)
        for leader, reason in silent.items():
            self.unread |= {row.partition: reason for row in by_leader[leader]}
        found: dict[int, deque[_Batch]] = {}
        for answer in answers.values():
            for topic in answer.responses:
                for data in topic.partitions:
                    index = int(data.partition_index)
                    try:
                        found[index] = self._batches(index, data, isolation_level)
                    except ClientError as error:
                        self.unread[index] = reason_of(error)
        return found

    def _batches(self, index: int, data: PartitionData, isolation_level: int) -> deque[_Batch]:
        subject = f"{self._topic}-{index}"
        if data.error_code:
            raise RequestRefused(subject, data.error_code, "you may not read it" if is_denied(data.error_code) else None)
        self._stable[index] = int(data.last_stable_offset)
        records = cast("Buffer", data.records or b"")
        is_committed = isolation_level == _READ_COMMITTED
        found: deque[_Batch] = deque()
        try:
            for position, header, is_visible in fetched_batches(records, data.aborted_transactions):
                found.append(
                    _Batch(records, position, header, _mark_of(header, is_visible=is_visible, is_committed=is_committed))
                )
        except MalformedMessage as error:
            raise ClientError(f"{subject}: {error.reason}") from error
        return found


def _mark_of(header: BatchHeader, *, is_visible: bool, is_committed: bool) -> Mark:
    if header.is_control:
        return Mark.CONTROL
    if not is_visible:
        return Mark.ABORTED
    if not is_committed and header.is_transactional:
        return Mark.OPEN
    return Mark.COMMITTED if header.is_transactional else Mark.PLAIN


async def decoded(partition: int, batch: _Batch) -> list[RawRecord]:
    """Return the records of a batch. Raises ClientError for one that cannot be read."""
    data, position, header, mark = batch
    found: list[RawRecord] = []
    try:
        if header.compression and header.size_bytes > _SMALL_BATCH_BYTES:
            records = await asyncio.to_thread(read_records, data, position)
        else:
            records = read_records(data, position)
        for record in records:
            found.append(RawRecord(partition, record, mark, header))
            if not len(found) % _RECORDS_AT_ONCE:
                await asyncio.sleep(0)
    except MalformedMessage as error:
        raise ClientError(f"partition {partition}, the batch at offset {header.base_offset}: {error.reason}") from error
    return found


class Stream:
    """The records of a partition from an offset up to ``end``. ``position`` is the next offset to fetch."""

    def __init__(self, partition: int, position: int, end: int) -> None:
        self.partition = partition
        self.position = position
        self.end = end
        self.buffer: deque[RawRecord] = deque()
        self.batches: deque[_Batch] = deque()

    @property
    def next_offset(self) -> int:
        """Return the place after the records that were taken."""
        if self.buffer:
            return self.buffer[0].record.offset
        return max(self.batches[0].header.base_offset, self._taken) if self.batches else self.position

    _taken = 0

    @property
    def is_hungry(self) -> bool:
        """Return whether it needs another fetch before its next record is known."""
        return not self.buffer and not self.batches and self.position < self.end

    def feed(self, batches: deque[_Batch] | None) -> None:
        """Take the fetched batches. Without any, nothing is left."""
        kept = deque(batch for batch in batches or () if batch.header.base_offset < self.end)
        self._taken = self.position
        self.batches = kept
        self.position = min(max(kept[-1].header.next_offset, self.position), self.end) if kept else self.end

    async def decode(self) -> None:
        """Decode batches until a record is known. Raises ClientError."""
        while not self.buffer and self.batches:
            batch = self.batches.popleft()
            found = await decoded(self.partition, batch)
            self.buffer.extend(each for each in found if self._taken <= each.record.offset < self.end)


class BackStream:
    """The records of a partition before ``low``, down to ``start``, in order in ``buffer``. Each step back doubles."""

    def __init__(self, partition: int, before: int, start: int, step: int) -> None:
        self.partition = partition
        self.low = before
        self.start = start
        self.step = step
        self.buffer: deque[RawRecord] = deque()

    @property
    def is_hungry(self) -> bool:
        """Return whether it needs another step back before its last record is known."""
        return not self.buffer and self.low > self.start

    async def step_back(self, reader: TopicReader, partition_bytes: int) -> None:
        """Read the records of the next step. Raises ClientError."""
        first, position = max(self.low - self.step, self.start), self.low
        self.step *= 2
        found: list[RawRecord] = []
        position = first
        while position < self.low:
            batches = (await reader.fetch({self.partition: position}, partition_bytes)).get(self.partition)
            if not batches:
                break
            for batch in batches:
                if batch.header.base_offset >= self.low:
                    break
                # A batch is kept as a whole, and not decoded again by the next step.
                found += [each for each in await decoded(self.partition, batch) if self.start <= each.record.offset < self.low]
            position = max(batches[-1].header.next_offset, position + 1)
        self.low = min([first, *(each.record.offset for each in found)])
        self.buffer.extendleft(reversed(found))
