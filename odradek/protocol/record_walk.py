"""A walk over the records of a batch that builds none of them: their layout is checked, their keys and timestamps are judged.

(``odradek.protocol.records`` has the layout, and builds.) A few kilobytes may decompress to millions of records, or to one with
millions of headers. So the walk goes on for as many of both at a time as its caller says, and ends where enough are refused.

Left out: whether headers' keys are UTF-8. Kafka's broker does not look either.
"""

from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import TIMESTAMP_TYPE_MASK, BatchHeader, Buffer
from odradek.protocol.varint import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable

# Length, attributes, timestamp, offset, key, value and headers, one byte each.
_MIN_RECORD_BYTES: Final = 7
_MIN_HEADER_BYTES: Final = 2
_MIN_INT64: Final = -(1 << 63)
_MAX_INT64: Final = (1 << 63) - 1
_LONGEST_VARINT_BYTES: Final = 5
# The records are copied in pieces of about this size: bytes are indexed in half the time of a view.
_PIECE_BYTES: Final = 128 * 1024
# Headers of one record between two calls of ``pause``.
_HEADERS_AT_ONCE: Final = 2_000


class RecordWalk:
    """The records of a batch, in order; ``data`` is all of them, decompressed. MalformedMessage, here and in ``go_on``.

    ``refused`` has (index, timestamp, whether it has a key, offset delta) of each record without a key, if ``wants_key``, or with
    a timestamp, other than -1 for none, outside of ``earliest`` to ``latest`` (ms since the epoch), but no more than
    ``most_refused`` of them: the walk is done then. Records in front of ``first_offset_delta`` are not judged.
    ``max_timestamp`` is that of the records up to here, -1 if none has one. ``pause`` is called within a record of thousands of
    headers, and may raise.
    """

    __slots__ = (
        "_base_timestamp",
        "_batch_timestamp",
        "_bounds",
        "_count",
        "_data",
        "_first_offset_delta",
        "_index",
        "_left",
        "_pause",
        "_position",
        "_wants_key",
        "is_done",
        "max_timestamp",
        "most_refused",
        "refused",
    )

    def __init__(
        self,
        header: BatchHeader,
        data: Buffer,
        *,
        wants_key: bool = False,
        earliest: int = _MIN_INT64,
        latest: int = _MAX_INT64,
        most_refused: int = 1,
        first_offset_delta: int = 0,
        pause: "Callable[[], None] | None" = None,
    ) -> None:
        if not 0 <= header.record_count <= len(data) // _MIN_RECORD_BYTES:
            raise MalformedMessage(f"{header.record_count} records in {len(data)} bytes")
        self.refused: list[tuple[int, int, bool, int]] = []
        self.most_refused = most_refused
        self.max_timestamp = -1
        self.is_done = False
        self._wants_key = wants_key
        self._first_offset_delta = first_offset_delta
        self._bounds = (earliest, latest)
        self._base_timestamp = header.base_timestamp
        # The one that all records of a batch with LogAppendTime have.
        self._batch_timestamp = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
        self._count = header.record_count
        self._data = data
        self._pause = pause
        # What ``go_on`` may still walk over.
        self._left = 0
        # Those of the next record.
        self._index = 0
        self._position = 0

    def go_on(self, most: int) -> None:
        """Walk over the next ``most`` records and headers, or up to the end; the last record is walked over to its end."""
        self._left = most
        try:
            while self._left > 0 and self._index < self._count and not self.is_done:
                self._walk_piece()
        except IndexError:
            raise MalformedMessage("the data ends within a record") from None
        if self._index == self._count:
            self.is_done = True
            if self._position != len(self._data):
                raise MalformedMessage(f"{len(self._data) - self._position} bytes behind the last record")

    def _walk_piece(self) -> None:
        """Walk over records in the next piece of the data, as far as ``_left`` goes."""
        start = self._position
        piece = self._next_piece(start)
        is_last_piece = start + len(piece) == len(self._data)
        earliest, latest = self._bounds
        batch_timestamp = self._batch_timestamp
        base_timestamp = self._base_timestamp
        wants_key = self._wants_key
        max_timestamp = self.max_timestamp
        at = 0
        index = self._index
        count = self._count
        left = self._left
        while left > 0 and index < count:
            first = at
            if len(piece) - at < _LONGEST_VARINT_BYTES and not is_last_piece:
                break
            number = piece[at]
            if number < 0x80:
                at += 1
                size = (number >> 1) ^ -(number & 1)
            else:
                size, at = read_varint(piece, at)
            end = at + size
            if size < _MIN_RECORD_BYTES - 1 or start + end > len(self._data):
                raise MalformedMessage(f"a record of {size} bytes in {len(self._data) - start - at}")
            if end > len(piece):
                at = first
                break
            delta, has_key, offset_delta, headers = _fields(piece, at, end, self._pause)
            at = end
            left -= 1 + headers
            timestamp = base_timestamp + delta if batch_timestamp is None else batch_timestamp
            if not _MIN_INT64 <= timestamp <= _MAX_INT64:
                raise MalformedMessage(f"a record with timestamp {timestamp}")
            max_timestamp = max(max_timestamp, timestamp)
            is_refused = (wants_key and not has_key) or (timestamp != -1 and not earliest <= timestamp <= latest)
            if is_refused and offset_delta >= self._first_offset_delta:
                self.refused.append((index, timestamp, has_key, offset_delta))
                if len(self.refused) >= self.most_refused:
                    self.is_done = True
                    break
            index += 1
        self._index = index
        self._left = left
        self._position = start + at
        self.max_timestamp = max_timestamp

    def _next_piece(self, start: int) -> bytes:
        """Bytes of the data from ``start`` on, with one whole record at least, if there is one."""
        data = self._data
        piece = bytes(data[start : start + _PIECE_BYTES])
        if len(piece) < _PIECE_BYTES:
            return piece
        size, at = read_varint(piece, 0)
        return piece if at + size <= len(piece) else bytes(data[start : start + at + size])


def _fields(piece: bytes, at: int, end: int, pause: "Callable[[], None] | None") -> tuple[int, bool, int, int]:
    """(timestamp delta, whether there is a key, offset delta, number of headers) of the record from ``at`` to ``end``.

    Its attributes are at ``at``.
    """
    # Nearly all varints are of one byte: these are read here, without a call.
    number = piece[at + 1]
    if number < 0x80:
        at += 2
        delta = (number >> 1) ^ -(number & 1)
    else:
        delta, at = read_varint(piece, at + 1, 64)
    number = piece[at]
    if number < 0x80:
        at += 1
        offset_delta = (number >> 1) ^ -(number & 1)
    else:
        offset_delta, at = read_varint(piece, at)
    number = piece[at]
    if number < 0x80:
        at += 1
        key_size = (number >> 1) ^ -(number & 1)
    else:
        key_size, at = read_varint(piece, at)
    if key_size > 0:
        at += key_size
    if at >= end:
        raise MalformedMessage(f"a key of {key_size} bytes goes beyond its record")
    number = piece[at]
    if number < 0x80:
        at += 1
        size = (number >> 1) ^ -(number & 1)
    else:
        size, at = read_varint(piece, at)
    if size > 0:
        at += size
    if at >= end:
        raise MalformedMessage(f"a value of {size} bytes goes beyond its record")
    headers = 0
    if piece[at] == 0:
        at += 1
    else:
        headers, at = _behind_headers(piece, at, end, pause)
    if at != end or offset_delta < 0:
        raise MalformedMessage(f"a record with offset delta {offset_delta} that ends {end - at} bytes from where its length says")
    return delta, key_size >= 0, offset_delta, headers


def _behind_headers(data: bytes, position: int, end: int, pause: "Callable[[], None] | None") -> tuple[int, int]:
    """How many headers there are, by the count at ``position``, and the position behind them."""
    count, position = read_varint(data, position)
    if not 0 <= count <= (end - position) // _MIN_HEADER_BYTES:
        raise MalformedMessage(f"{count} headers in {end - position} bytes")
    for number in range(1, count + 1):
        if pause is not None and number % _HEADERS_AT_ONCE == 0:
            pause()
        size, position = read_varint(data, position)
        if size < 0:
            raise MalformedMessage("a header without a key")
        size, position = read_varint(data, position + size)
        position += max(size, 0)
        if position > end:
            raise MalformedMessage("a header goes beyond its record")
    return count, position
