"""The records of a topic: pages of them, forward and back, and a search. By Fetch, so the user's rights hold.

Records of several partitions are merged by timestamp. Each partition keeps its order. Control records and aborted records are
there, and marked. A ``Cursor`` is a place between records; it stays valid while records are appended or deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.page.facts.decoding import Format, Shown
    from odradek.page.facts.source import Source
    from odradek.protocol.records import Record

MOST_RECORDS: Final = 500
# The time of one call of ``search``.
SEARCH_MS: Final = 250.0


class Mark(StrEnum):
    """The kind of a record. CONTROL has no key and value of a producer. OPEN: its transaction has not ended."""

    PLAIN = ""
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class ShownHeader:
    """A header of a record."""

    name: str
    value: Shown


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record for display. ``timestamp_ms`` is None if it has none. ``control`` is "commit", "abort" or a number, else "".

    ``producer_id`` is None without one. ``size_bytes`` is that of key, value and headers.
    """

    partition: int
    offset: int
    timestamp_ms: int | None
    key: Shown
    value: Shown
    headers: tuple[ShownHeader, ...]
    mark: Mark
    control: str
    producer_id: int | None
    producer_epoch: int | None
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
    there was nothing before and after. ``starts`` and ``ends`` are the first and the next offset of each partition.
    ``unread`` has the partitions that could not be read, with the reason.
    """

    topic: str
    records: tuple[ShownRecord, ...]
    preceding: Cursor
    following: Cursor
    is_start: bool
    is_end: bool
    starts: Cursor
    ends: Cursor
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

    topic: str
    records: tuple[ShownRecord, ...]
    following: Cursor
    ends: Cursor
    scanned: int
    left: int
    is_done: bool
    unread: tuple[tuple[int, str], ...]


async def read_forward(source: Source, topic: str, cursor: Cursor, limit: int = 50, wanted: Format | None = None) -> RecordPage:
    """Return the records from ``cursor`` on, at most ``limit``. It does not wait at the end. Raises as ``at_time``."""
    raise NotImplementedError


async def read_back(source: Source, topic: str, cursor: Cursor, limit: int = 50, wanted: Format | None = None) -> RecordPage:
    """Return the last records before ``cursor``, at most ``limit``. From ``at_end``, this is the tail. Raises as ``at_time``."""
    raise NotImplementedError


async def at_start(source: Source, topic: str, partitions: Iterable[int] | None = None) -> Cursor:
    """Return the start of all or of these partitions. Raises as ``at_time``."""
    raise NotImplementedError


async def at_end(source: Source, topic: str, partitions: Iterable[int] | None = None) -> Cursor:
    """Return the end of all or of these partitions. Raises as ``at_time``."""
    raise NotImplementedError


async def at_time(source: Source, topic: str, timestamp_ms: int, partitions: Iterable[int] | None = None) -> Cursor:
    """Return the place of the first records at or after a time. Raises Missing, Denied, Unavailable."""
    raise NotImplementedError


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
    raise NotImplementedError


async def raw_record(source: Source, topic: str, partition: int, offset: int) -> Record:
    """Return one record with all its bytes, to copy, save, or edit and send again. Raises Missing, Denied, Unavailable."""
    raise NotImplementedError
