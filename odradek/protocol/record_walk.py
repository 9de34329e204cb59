"""A walk over the records of a batch that builds no records. It checks their layout, and judges keys and timestamps.

(``odradek.protocol.records`` has the layout, and builds records.) A few kilobytes may decompress to millions of records, or to
one with millions of headers. So the caller sets how many of both to walk at a time, and the walk ends when enough are refused.

Left out: a check that header keys are UTF-8. Kafka's broker does not check that either.

There is also a quick check (``ensure_bounds``): whether the given number of records, with the lengths that they state, fill a
batch exactly. Kafka's broker reads every record of a batch. Here that would double the time of a large batch. So the check ends
after ``MOST_RECORDS`` records, or ``HEAD_BYTES`` of them, decompressed. Beyond that, only the number of records is checked,
against the remaining bytes. The parts of a record are left to the walk, for topics whose configuration requires it. The check
costs 0.2 us for a batch of one record in pure Python, 0.6 us for ten alike, 20 us for a large one; 20 to 60 us for a compressed
one, nearly all of it for the codec.
"""

from typing import TYPE_CHECKING, Final

from odradek.protocol.compression import decompressed_head
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.record_batch import HEADER_SIZE, TIMESTAMP_TYPE_MASK, BatchHeader, Buffer
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

    ``refused`` has (index, timestamp, whether it has a key, offset delta) of each refused record. A record is refused if it has
    no key and ``wants_key`` is set, or if its timestamp is outside ``earliest`` to ``latest`` (ms since the epoch; -1 for none is
    accepted). The walk ends after ``most_refused`` of them. Records before ``first_offset_delta`` are not judged.
    ``max_timestamp`` covers the records so far, -1 if none has a timestamp. ``pause`` is called within a record of thousands of
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
            raise MalformedMessage(f"{header.record_count} records do not fit in {len(data)} bytes")
        self.refused: list[tuple[int, int, bool, int]] = []
        self.most_refused = most_refused
        self.max_timestamp = -1
        self.is_done = False
        self._wants_key = wants_key
        self._first_offset_delta = first_offset_delta
        self._bounds = (earliest, latest)
        self._base_timestamp = header.base_timestamp
        # The common timestamp of all records of a batch with LogAppendTime.
        self._batch_timestamp = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
        self._count = header.record_count
        self._data = data
        self._pause = pause
        # The records and headers that ``go_on`` may still walk over.
        self._left = 0
        # The values of the next record.
        self._index = 0
        self._position = 0

    def go_on(self, most: int) -> None:
        """Walk over the next ``most`` records and headers, or up to the end. The last record is always walked completely."""
        self._left = most
        try:
            while self._left > 0 and self._index < self._count and not self.is_done:
                self._walk_piece()
        except IndexError:
            raise MalformedMessage("the data ends inside a record") from None
        if self._index == self._count:
            self.is_done = True
            if self._position != len(self._data):
                raise MalformedMessage(f"{len(self._data) - self._position} bytes after the last record")

    def _walk_piece(self) -> None:
        """Walk over records in the next piece of the data, limited by ``_left``."""
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
                raise MalformedMessage(f"a record has {size} bytes, but {len(self._data) - start - at} are left")
            if end > len(piece):
                at = first
                break
            delta, has_key, offset_delta, headers = _fields(piece, at, end, self._pause)
            at = end
            left -= 1 + headers
            timestamp = base_timestamp + delta if batch_timestamp is None else batch_timestamp
            if not _MIN_INT64 <= timestamp <= _MAX_INT64:
                raise MalformedMessage(f"a record has the invalid timestamp {timestamp}")
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
        """Return bytes of the data from ``start`` on, with at least one complete record, if there is one."""
        data = self._data
        piece = bytes(data[start : start + _PIECE_BYTES])
        if len(piece) < _PIECE_BYTES:
            return piece
        size, at = read_varint(piece, 0)
        return piece if at + size <= len(piece) else bytes(data[start : start + at + size])


def _fields(piece: bytes, at: int, end: int, pause: "Callable[[], None] | None") -> tuple[int, bool, int, int]:
    """Return (timestamp delta, whether there is a key, offset delta, number of headers) of the record up to ``end``.

    The record's attributes are at ``at``.
    """
    # Nearly all varints have one byte: these are read here, without a call.
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
        raise MalformedMessage(f"a key has {key_size} bytes and goes past its record")
    number = piece[at]
    if number < 0x80:
        at += 1
        size = (number >> 1) ^ -(number & 1)
    else:
        size, at = read_varint(piece, at)
    if size > 0:
        at += size
    if at >= end:
        raise MalformedMessage(f"a value has {size} bytes and goes past its record")
    headers = 0
    if piece[at] == 0:
        at += 1
    else:
        headers, at = _behind_headers(piece, at, end, pause)
    if at != end or offset_delta < 0:
        raise MalformedMessage(
            f"a record with offset delta {offset_delta} ends {end - at} bytes away from the end given by its length"
        )
    return delta, key_size >= 0, offset_delta, headers


def _behind_headers(data: bytes, position: int, end: int, pause: "Callable[[], None] | None") -> tuple[int, int]:
    """Return the number of headers, from the count at ``position``, and the position after them."""
    count, position = read_varint(data, position)
    if not 0 <= count <= (end - position) // _MIN_HEADER_BYTES:
        raise MalformedMessage(f"{count} headers do not fit in {end - position} bytes")
    for number in range(1, count + 1):
        if pause is not None and number % _HEADERS_AT_ONCE == 0:
            pause()
        size, position = read_varint(data, position)
        if size < 0:
            raise MalformedMessage("a header has no key")
        size, position = read_varint(data, position + size)
        position += max(size, 0)
        if position > end:
            raise MalformedMessage("a header goes past its record")
    return count, position


MOST_RECORDS: Final = 256
HEAD_BYTES: Final = 64 * 1024
# The most bytes that the records of a batch may have, decompressed.
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_EXPANSION: Final = 20
_HEAD_END: Final = HEADER_SIZE + HEAD_BYTES
# A position beyond any batch.
_NOWHERE: Final = 1 << 40


def _first_steps() -> tuple[int, ...]:
    """Return the distance to the next record by a record's first byte; _NOWHERE if that byte is not enough."""
    least = (_MIN_RECORD_BYTES - 1) << 1
    short = [_NOWHERE if number & 1 or number < least else 1 + (number >> 1) for number in range(0x80)]
    return (*short, *(_NOWHERE if number & 1 else 2 + ((number & 0x7F) >> 1) for number in range(0x80, 0x100)))


_STEPS: Final = _first_steps()
# The additional distance by the second byte of a two-byte length.
_HIGH_STEPS: Final = tuple(number << 6 if number < 0x80 else _NOWHERE for number in range(0x100))


def most_decompressed_bytes(size: int) -> int:
    """Return the most bytes that the records of a batch of ``size`` bytes may have, decompressed."""
    return max(_MOST_BYTES, size * _MOST_EXPANSION)


def ensure_bounds(batch: Buffer, size: int, count: int, codec: int) -> None:
    """Raise MalformedMessage unless the first of ``count`` records match their lengths, and the others have room.

    The batch is the first ``size`` bytes of ``batch``.
    """
    if codec:
        data, is_all = decompressed_head(codec, memoryview(batch)[HEADER_SIZE:size], HEAD_BYTES)
        _look_closely(data, count, len(data) if is_all else most_decompressed_bytes(size), is_exact=is_all)
        return
    head = batch if type(batch) is bytes else bytes(batch[: min(_HEAD_END, size)])
    unseen = count - MOST_RECORDS if count > MOST_RECORDS else 0
    try:
        number = head[HEADER_SIZE]
        step = _STEPS[number]
        if number >= 0x80:
            step += _HIGH_STEPS[head[HEADER_SIZE + 1]]
        if count == 1 and step == size - HEADER_SIZE:
            return
        # Records of equal length have the same first bytes. Checking them together takes a third of the time.
        if (
            step * count == size - HEADER_SIZE
            and head[HEADER_SIZE:size:step] == head[HEADER_SIZE : HEADER_SIZE + 1] * count
            and (number < 0x80 or head[HEADER_SIZE + 1 : size : step] == head[HEADER_SIZE + 1 : HEADER_SIZE + 2] * count)
        ):
            return
        at = HEADER_SIZE + step
        left = count - unseen - 1
        while left > 0:
            number = head[at]
            if number < 0x80:
                at += _STEPS[number]
            else:
                at += _STEPS[number] + _HIGH_STEPS[head[at + 1]]
            left -= 1
    except IndexError:
        at = _NOWHERE
    if at + unseen * _MIN_RECORD_BYTES > size or (at != size and not unseen):
        _look_closely(head[HEADER_SIZE : min(size, _HEAD_END)], count, size - HEADER_SIZE, is_exact=True)


def _look_closely(data: bytes, count: int, total: int, *, is_exact: bool) -> None:
    """Do ``ensure_bounds`` for any lengths. ``data`` is all of the records' ``total`` bytes, or the first ones.

    Unless ``is_exact``, the records have more bytes than ``data``, and no more than ``total``.
    """
    seen = min(count, MOST_RECORDS)
    at = 0
    for index in range(seen):
        if at + (count - index) * _MIN_RECORD_BYTES > total:
            raise MalformedMessage(f"{count - index} records do not fit in {total - at} bytes")
        if len(data) - at < _LONGEST_VARINT_BYTES and len(data) < total:
            return
        length, at = read_varint(data, at)
        at += length
        if length < _MIN_RECORD_BYTES - 1:
            raise MalformedMessage(f"a record has the invalid length {length}")
    unseen_bytes = (count - seen) * _MIN_RECORD_BYTES
    has_rest = seen == count and (at != total if is_exact else at <= len(data))
    if at + unseen_bytes > total or has_rest:
        raise MalformedMessage(f"{count} records, but the first {seen} take {at} of {total} bytes")
