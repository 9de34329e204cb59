"""The partitions of ``__consumer_offsets`` in memory: they outlive the broker, fail when told, and know what was written.

Records of groups are looked at as they are appended (``history``), whoever decided on them. A history notes and checks them; it
is told anew of what is left of a log that has lost its tail.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from odradek.protocol.coordinator_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plain_batches import build_batch
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.coordinator.runtime.result import EndTxnMarker

_BASE_OFFSET = Struct(">q")


class InjectedFault(KafkaError):
    """An error that the history asked for."""


class History(Protocol):
    """What is known of the records of one partition."""

    def note(self, offset: int, key: bytes, value: bytes | None) -> None:
        """A record is appended. Raises Violation."""

    def end_batch(self) -> None:
        """All records of a batch are noted. Raises Violation."""

    def without(self, end_offset: int, records: Iterable[tuple[int, bytes, bytes | None]]) -> History:
        """The history of a log that ends at ``end_offset`` now, and of which these records are left."""


class SimulatedLog:
    """One partition. ``failures`` has the errors of the appends to come, and whether the batch is written all the same."""

    def __init__(self, max_batch_bytes: int, history: History) -> None:
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.max_batch_bytes = max_batch_bytes
        self.history: Any = history
        self.failures: deque[tuple[Exception, bool]] = deque()
        self.read_failures: deque[Exception] = deque()
        self.is_held_back = False
        self.on_high_watermark: Callable[[], None] | None = None
        # Parallel: (last offset), batch, its records.
        self._last_offsets: list[int] = []
        self._batches: list[bytes] = []
        self._records: list[list[tuple[bytes, bytes | None]]] = []

    def append(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        if producer is not None:
            raise AssertionError(f"a batch of {producer}")
        error, is_written = self.failures.popleft() if self.failures else (None, True)
        if is_written:
            self._write(records, now_ms)
        if error is not None:
            raise error
        if not self.is_held_back:
            self.release()
        return self.log_end_offset

    def append_marker(self, marker: EndTxnMarker, now_ms: int) -> int:
        raise AssertionError(f"{marker} at {now_ms}")

    def left_open(self, producer_id: int, oldest_epoch: int) -> EndTxnMarker | None:
        raise AssertionError(f"producer {producer_id}, epoch {oldest_epoch}")

    def _write(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int) -> None:
        batch = build_batch(records, now_ms)
        if len(batch) > self.max_batch_bytes:
            raise AssertionError(f"a batch of {len(batch)} bytes, of {self.max_batch_bytes} at most")
        offset = self.log_end_offset
        for key, value in records:
            self.history.note(offset, key, value)
            offset += 1
        self.history.end_batch()
        self._batches.append(_BASE_OFFSET.pack(self.log_end_offset) + batch[8:])
        self._records.append(list(records))
        self._last_offsets.append(offset - 1)
        self.log_end_offset = offset

    def release(self) -> None:
        """Let the high watermark move to the end."""
        self.is_held_back = False
        self.high_watermark = self.log_end_offset
        if self.on_high_watermark is not None:
            self.on_high_watermark()

    def read(self, offset: int, max_bytes: int) -> bytes:
        if self.read_failures:
            raise self.read_failures.popleft()
        chunks: list[bytes] = []
        left = max_bytes
        for batch in self._batches[bisect_right(self._last_offsets, offset - 1) :]:
            if chunks and left <= 0:
                break
            chunks.append(batch[:left] if chunks else batch)
            left -= len(batch)
        return b"".join(chunks)

    def check_read(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """``offset`` was read, -1 for none. Raises Violation where that is not what there is at the high watermark."""
        key = encode_key(OffsetCommitKey(group_id, topic, partition))
        committed = bisect_right(self._last_offsets, self.high_watermark - 1)
        values = (value for records in reversed(self._records[:committed]) for each, value in reversed(records) if each == key)
        data = next(values, None)
        value = decode_value(OffsetCommitKey(group_id, topic, partition), data)
        expected = value.offset if isinstance(value, OffsetCommitValue) else -1
        if offset != expected:
            what = f"{group_id}, {topic}-{partition}: {offset} is fetched, and {expected} is committed"
            raise Violation("what was committed is what is fetched", what)

    def has_group(self, group_id: str) -> bool:
        """Whether a group is there at the high watermark: written itself, or some offset of it."""
        exists = False
        committed = bisect_right(self._last_offsets, self.high_watermark - 1)
        for key_bytes, value in (pair for records in self._records[:committed] for pair in records):
            key = decode_key(key_bytes)
            if getattr(key, "group", None) != group_id:
                continue
            if isinstance(key, GroupMetadataKey):
                exists = value is not None
            elif value is not None:
                exists = True
        return exists

    def lose_tail(self, keep: int) -> None:
        """A new leader did not have what the high watermark did not cover, but for ``keep`` batches. Nobody may know of it."""
        first = bisect_right(self._last_offsets, self.high_watermark - 1) + keep
        if first >= len(self._batches):
            return
        self.log_end_offset = self._last_offsets[first] + 1 - len(self._records[first])
        self._delete(range(first, len(self._batches)))
        self.history = self.history.without(
            self.log_end_offset,
            (
                (offset, key, value)
                for last_offset, records in zip(self._last_offsets, self._records, strict=True)
                for offset, (key, value) in enumerate(records, last_offset + 1 - len(records))
            ),
        )

    def compact(self) -> int:
        """Drop the batches below the high watermark whose records are all overwritten by then; how many."""
        latest: dict[bytes, int] = {}
        committed = bisect_right(self._last_offsets, self.high_watermark - 1)
        for index, records in enumerate(self._records[:committed]):
            for key, _ in records:
                latest[key] = index
        kept = set(latest.values())
        dropped = [index for index in range(committed) if index not in kept]
        self._delete(dropped)
        return len(dropped)

    def _delete(self, indexes: Sequence[int]) -> None:
        for index in reversed(indexes):
            del self._last_offsets[index], self._batches[index], self._records[index]


class SimulatedLogs:
    """The topic, and the loop: ``turn`` runs what was to be called soon. ``view`` is another reader's."""

    def __init__(self, logs: list[SimulatedLog]) -> None:
        self.logs = logs
        self.not_here: set[int] = set()
        self.soon: deque[Callable[[], None]] = deque()

    @property
    def partition_count(self) -> int:
        return len(self.logs)

    def open(self, partition: int) -> SimulatedLog:
        if partition in self.not_here:
            raise InjectedFault(ErrorCode.NOT_LEADER_OR_FOLLOWER, "led by somebody else")
        return self.logs[partition]

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        self.logs[partition].on_high_watermark = callback

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        """One turn of the loop."""
        callbacks, self.soon = self.soon, deque()
        for callback in callbacks:
            callback()


class LogsView(SimulatedLogs):
    """The same logs for one who only reads, and whom they do not tell of their high watermarks."""

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        """Nothing moves while the view is read."""
