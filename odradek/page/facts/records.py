"""The records of a topic: pages of them, forward and back, and a search. By Fetch, so the user's rights hold.

Records of several partitions are merged by timestamp. Each partition keeps its order. Control records and aborted records are
there, and marked. A ``Cursor`` is a place between records; it stays valid while records are appended or deleted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from odradek.client.api import ClientError
from odradek.page.facts.decoding import show
from odradek.page.facts.reading import BackStream, Mark, RawRecord, Stream, TopicReader, bounds_of, decoded
from odradek.page.facts.source import Missing, described_topic, leaders_of, list_offsets, told
from odradek.protocol.control_records import ABORT, COMMIT, read_control_record
from odradek.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.page.facts.decoding import Format, Shown
    from odradek.page.facts.source import Source
    from odradek.protocol.records import Record

MOST_RECORDS: Final = 500
# A page ends after so many bytes, whatever its limit.
MOST_PAGE_BYTES: Final = 8 * 1024 * 1024
_PAGE_FETCH_BYTES: Final = 256 * 1024
_SEARCH_FETCH_BYTES: Final = 1024 * 1024
# The time for which a search may hold up the loop.
_TURN_MS: Final = 2.0
_RECORDS_AT_ONCE: Final = 32
_CONTROL_NAMES: Final = {ABORT: "abort", COMMIT: "commit"}
# The time of one call of ``search``.
SEARCH_MS: Final = 250.0


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record for display. ``timestamp_ms`` and ``producer_id`` are -1 without one. ``headers`` counts them.

    ``control`` is "commit", "abort" or a number, else "". ``size_bytes`` is that of key, value and headers.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: Shown
    value: Shown
    headers: int
    mark: Mark
    control: str
    producer_id: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a topic: the next offset of each partition, in order. Partitions that are absent are left out of the reading."""

    offsets: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        """Return the cursor as a text such as "0:15,1:7", for a URL."""
        return ",".join(f"{partition}:{offset}" for partition, offset in self.offsets)

    @classmethod
    def of(cls, offsets: Mapping[int, int]) -> Self:
        """Make a cursor of the offsets by partition."""
        return cls(tuple(sorted(offsets.items())))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` has written. Raises ValueError."""
        pairs = (pair.partition(":") for pair in text.split(",") if pair)
        return cls.of({int(partition): int(offset) for partition, _, offset in pairs})


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records, oldest first. ``following`` is the place after the last one: read from it for the next page, and for the tail.

    ``preceding`` is the place before the first one: read back from it for the previous page. ``is_start`` and ``is_end``:
    there was nothing before and after. ``unread`` has the partitions that could not be read, with the reason.
    """

    records: tuple[ShownRecord, ...]
    preceding: Cursor
    following: Cursor
    is_start: bool
    is_end: bool
    unread: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Search:
    """A text to look for, in any case, in these fields. ``in_headers`` is about names and values."""

    text: str
    in_key: bool = True
    in_value: bool = True
    in_headers: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one slice of a search: records that match, and where to go on. ``left`` is the number of offsets left.

    ``is_done``: the search has reached the end that the topic had when ``ends`` was read. Otherwise call ``search`` with
    ``following`` and ``ends`` again.
    """

    records: tuple[ShownRecord, ...]
    following: Cursor
    ends: Cursor
    scanned: int
    left: int
    is_done: bool
    unread: tuple[tuple[int, str], ...]


async def read_forward(source: Source, topic: str, cursor: Cursor, limit: int = 50, wanted: Format | None = None) -> RecordPage:
    """Return the records from ``cursor`` on, at most ``limit``. It does not wait at the end. Raises as ``at_time``."""
    reader, places = await _reader(source, topic, cursor)
    streams = [Stream(index, offset, reader.bounds.ends[index]) for index, offset in places.items()]
    taken: list[RawRecord] = []
    size_bytes = 0
    while len(taken) < min(limit, MOST_RECORDS) and size_bytes < MOST_PAGE_BYTES:
        await _feed(reader, streams, _PAGE_FETCH_BYTES)
        ready = [stream for stream in streams if stream.buffer]
        if not ready:
            break
        earliest = min(ready, key=lambda stream: (stream.buffer[0].record.timestamp, stream.partition))
        taken.append(earliest.buffer.popleft())
        size_bytes += _size_of(taken[-1].record)
    reader.raise_if_denied()
    following = places | {stream.partition: stream.next_offset for stream in streams if stream.partition not in reader.unread}
    return _page(reader, taken, (places, following), wanted)


async def read_back(source: Source, topic: str, cursor: Cursor, limit: int = 50, wanted: Format | None = None) -> RecordPage:
    """Return the last records before ``cursor``, at most ``limit``. From ``at_end``, this is the tail. Raises as ``at_time``."""
    reader, places = await _reader(source, topic, cursor)
    limit = min(limit, MOST_RECORDS)
    step = limit // max(len(places), 1) + 1
    streams = [BackStream(index, offset, reader.bounds.starts[index], step) for index, offset in places.items()]
    taken: deque[RawRecord] = deque()
    size_bytes = 0
    while len(taken) < limit and size_bytes < MOST_PAGE_BYTES:
        while hungry := [each for each in streams if each.is_hungry and each.partition not in reader.unread]:
            await asyncio.gather(*(_step_back(reader, stream) for stream in hungry))
        ready = [stream for stream in streams if stream.buffer]
        if not ready:
            break
        latest = max(ready, key=lambda stream: (stream.buffer[-1].record.timestamp, stream.partition))
        taken.appendleft(latest.buffer.pop())
        size_bytes += _size_of(taken[0].record)
    reader.raise_if_denied()
    preceding = dict(places)
    for each in reversed(taken):
        preceding[each.partition] = each.record.offset
    # Whatever was read up to the start has nothing before it.
    preceding |= {each.partition: each.start for each in streams if not each.buffer and each.low <= each.start}
    return _page(reader, list(taken), (preceding, places), wanted)


async def at_start(source: Source, topic: str, partitions: Iterable[int] | None = None) -> Cursor:
    """Return the start of all or of these partitions. Raises as ``at_time``."""
    return Cursor.of((await bounds_of(source, topic, partitions)).starts)


async def at_end(source: Source, topic: str, partitions: Iterable[int] | None = None) -> Cursor:
    """Return the end of all or of these partitions. Raises as ``at_time``."""
    return Cursor.of((await bounds_of(source, topic, partitions)).ends)


async def at_time(source: Source, topic: str, timestamp_ms: int, partitions: Iterable[int] | None = None) -> Cursor:
    """Return the place of the first records at or after a time. Raises Missing, Denied, Unavailable."""
    bounds = await bounds_of(source, topic, partitions)
    leaders = leaders_of([await described_topic(source, topic)])
    found = await list_offsets(source, {(topic, index): max(timestamp_ms, 0) for index in bounds.ends}, leaders)
    late = {index: end for index, end in bounds.ends.items() if found.get((topic, index), -1) < 0}
    return Cursor.of({index: late[index] if index in late else found[topic, index] for index in bounds.ends})


async def search(
    source: Source,
    topic: str,
    wanted: Search,
    *,
    cursor: Cursor,
    ends: Cursor | None = None,
    limit: int = 50,
    within_ms: float = SEARCH_MS,
) -> Found:
    """Search from ``cursor`` on, for at most ``within_ms`` or ``limit`` matches. The first call has no ``ends``.

    Raises as ``at_time``.
    """
    reader, places = await _reader(source, topic, cursor)
    until = reader.bounds.ends if ends is None else dict(ends.offsets)
    streams = [Stream(index, offset, until.get(index, offset)) for index, offset in places.items()]
    slice_ = _SearchSlice(source, wanted, limit, source.now_ms() + within_ms)
    for stream in streams:
        while not slice_.is_over:
            await _feed(reader, [stream], _SEARCH_FETCH_BYTES)
            if not stream.buffer:
                break
            await slice_.take(stream)
    reader.raise_if_denied()
    following = {stream.partition: min(stream.next_offset, stream.end) for stream in streams}
    left = sum(max(stream.end - following[stream.partition], 0) for stream in streams if stream.partition not in reader.unread)
    return Found(
        records=tuple(_shown(each, None) for each in sorted(slice_.found, key=lambda each: each.record.timestamp)),
        following=Cursor.of(following),
        ends=Cursor.of(until),
        scanned=slice_.scanned,
        left=left,
        is_done=not left,
        unread=tuple(sorted(reader.unread.items())),
    )


async def raw_record(source: Source, topic: str, partition: int, offset: int) -> Record:
    """Return one record with all its bytes, to copy, save, or edit and send again. Raises Missing, Denied, Unavailable."""
    reader = TopicReader(source, topic, await bounds_of(source, topic, [partition]))
    place = f"{topic}-{partition} at offset {offset}"
    if reader.bounds.starts.get(partition, 0) <= offset < reader.bounds.ends.get(partition, 0):
        batches = (await reader.fetch({partition: offset}, _PAGE_FETCH_BYTES)).get(partition)
        reader.raise_if_denied()
        if batches:
            with told():
                found = await decoded(partition, batches[0])
            for each in found:
                if each.record.offset == offset:
                    return each.record
    raise Missing(f"{place}: {reader.unread.get(partition, 'there is no such record')}")


class _SearchSlice:
    """The work of one call of ``search``."""

    def __init__(self, source: Source, wanted: Search, limit: int, deadline_ms: float) -> None:
        self.found: list[RawRecord] = []
        self.scanned = 0
        self._now_ms = source.now_ms
        self._wanted = wanted
        self._needle = wanted.text.casefold()
        self._limit = limit
        self._deadline_ms = deadline_ms
        self._turn_ends_ms = self._now_ms() + _TURN_MS

    @property
    def is_over(self) -> bool:
        """Return whether the slice has had its time, or enough matches."""
        return len(self.found) >= self._limit or self._now_ms() >= self._deadline_ms

    async def take(self, stream: Stream) -> None:
        """Look at the decoded records of a batch, in turns, until there are enough matches: it is not decoded again."""
        buffer = stream.buffer
        while buffer and len(self.found) < self._limit:
            each = buffer.popleft()
            self.scanned += 1
            if each.mark is not Mark.CONTROL and self._matches(each.record):
                self.found.append(each)
            if self.scanned % _RECORDS_AT_ONCE == 0 and self._now_ms() >= self._turn_ends_ms:
                await asyncio.sleep(0)
                self._turn_ends_ms = self._now_ms() + _TURN_MS

    def _matches(self, record: Record) -> bool:
        wanted = self._wanted
        return (
            (wanted.in_value and self._is_in(record.value))
            or (wanted.in_key and self._is_in(record.key))
            or (
                wanted.in_headers and any(self._needle in name.casefold() or self._is_in(value) for name, value in record.headers)
            )
        )

    def _is_in(self, data: bytes | None) -> bool:
        return data is not None and self._needle in data.decode(errors="replace").casefold()


async def _reader(source: Source, topic: str, cursor: Cursor) -> tuple[TopicReader, dict[int, int]]:
    """Return the reader for a cursor's partitions, and their places within their logs."""
    asked = dict(cursor.offsets)
    bounds = await bounds_of(source, topic, asked)
    places = {index: min(max(asked[index], bounds.starts[index]), end) for index, end in bounds.ends.items()}
    return TopicReader(source, topic, bounds), places


async def _feed(reader: TopicReader, streams: Iterable[Stream], partition_bytes: int) -> None:
    """Let each stream know its next record, if it has one."""
    await _decode(reader, streams)
    while hungry := [each for each in streams if each.is_hungry and each.partition not in reader.unread]:
        found = await reader.fetch({each.partition: each.position for each in hungry}, partition_bytes)
        for stream in hungry:
            stream.feed(found.get(stream.partition))
        await _decode(reader, hungry)


async def _decode(reader: TopicReader, streams: Iterable[Stream]) -> None:
    for stream in streams:
        try:
            await stream.decode()
        except ClientError as error:
            reader.unread[stream.partition] = error.reason


async def _step_back(reader: TopicReader, stream: BackStream) -> None:
    try:
        await stream.step_back(reader, _PAGE_FETCH_BYTES)
    except ClientError as error:
        reader.unread[stream.partition] = error.reason


def _page(
    reader: TopicReader,
    taken: Iterable[RawRecord],
    places: tuple[Mapping[int, int], Mapping[int, int]],
    wanted: Format | None,
) -> RecordPage:
    bounds, (preceding, following) = reader.bounds, places
    read = [index for index in bounds.ends if index not in reader.unread]
    return RecordPage(
        records=tuple(_shown(each, wanted) for each in taken),
        preceding=Cursor.of(preceding),
        following=Cursor.of(following),
        is_start=all(preceding[index] <= bounds.starts[index] for index in read),
        is_end=all(following[index] >= bounds.ends[index] for index in read),
        unread=tuple(sorted(reader.unread.items())),
    )


def _shown(raw: RawRecord, wanted: Format | None) -> ShownRecord:
    record = raw.record
    return ShownRecord(
        partition=raw.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=show(record.key),
        value=show(record.value, wanted),
        headers=len(record.headers),
        mark=raw.mark,
        control=_control(record) if raw.mark is Mark.CONTROL else "",
        producer_id=raw.header.producer_id,
        size_bytes=_size_of(record),
    )


def _control(record: Record) -> str:
    try:
        kind, _ = read_control_record(record)
    except MalformedMessage:
        return "unreadable"
    return _CONTROL_NAMES.get(kind, str(kind))


def _size_of(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
