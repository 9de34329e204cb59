"""The open batch of a shard: records replayed but not yet appended, and the operations that wait for them.

``LogWriter`` appends it to the log, and detects records of another writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plain_batches import uncompressed_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.coordinator.runtime.answers import DeferredEvent
    from odradek.coordinator.runtime.environment import RuntimeEnvironment
    from odradek.coordinator.runtime.ports import CoordinatorLog
    from odradek.coordinator.runtime.record import CoordinatorRecord, EndTxnMarker

# The size of a batch's header. Then a record's overhead: its attributes, and five lengths or deltas of up to five bytes.
BATCH_OVERHEAD_BYTES: Final = 61
_RECORD_OVERHEAD_BYTES: Final = 26


class OpenBatch:
    """Encoded (key, value) ``records``, and all ``events`` decided since the batch was opened, with or without records."""

    __slots__ = ("_limit_bytes", "_size_bytes", "events", "records")

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.events: list[DeferredEvent] = []
        # An upper bound of the size, and the log's limit, which the first record looks up.
        self._size_bytes = BATCH_OVERHEAD_BYTES
        self._limit_bytes = 0

    def take_room(self, size_bytes: int) -> bool:
        """Reserve ``size_bytes`` for records to be added. Return False if they do not fit the limit known so far."""
        size_bytes += self._size_bytes
        if size_bytes > self._limit_bytes:
            return False
        self._size_bytes = size_bytes
        return True

    def set_limit(self, limit_bytes: int) -> None:
        """Set the size of the largest batch that the log accepts."""
        self._limit_bytes = limit_bytes


def size_of(records: Sequence[tuple[bytes, bytes | None]]) -> int:
    """Return an upper bound of the size of encoded records, in bytes."""
    size_bytes = 0
    for key, value in records:
        size_bytes += len(key) + _RECORD_OVERHEAD_BYTES if value is None else len(key) + len(value) + _RECORD_OVERHEAD_BYTES
    return size_bytes


def fitting_size(records: Sequence[tuple[bytes, bytes | None]], limit_bytes: int) -> int:
    """Return an upper bound of the size of encoded records, which fit a batch of ``limit_bytes``.

    Raises KafkaError(MESSAGE_TOO_LARGE) where they do not.
    """
    size_bytes = size_of(records)
    if size_bytes + BATCH_OVERHEAD_BYTES > limit_bytes:
        size_bytes = uncompressed_size(records)
    if size_bytes + BATCH_OVERHEAD_BYTES > limit_bytes:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{size_bytes} bytes of records: a batch can have at most {limit_bytes}")
    return size_bytes


def split(
    records: Sequence[CoordinatorRecord], encoded: Sequence[tuple[bytes, bytes | None]], limit_bytes: int
) -> Iterator[tuple[Sequence[CoordinatorRecord], Sequence[tuple[bytes, bytes | None]]]]:
    """Split records, and their encoded form, into as few parts as fit one batch each. Each part has at least one record."""
    first = 0
    size_bytes = BATCH_OVERHEAD_BYTES
    for position, pair in enumerate(encoded):
        record_bytes = size_of((pair,))
        if position > first and size_bytes + record_bytes > limit_bytes:
            yield records[first:position], encoded[first:position]
            first = position
            size_bytes = BATCH_OVERHEAD_BYTES
        size_bytes += record_bytes
    yield records[first:], encoded[first:]


# Errors of a fenced producer or transaction coordinator: the broker is not at fault.
_REFUSALS: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class LogWriter:
    """The writer of one shard's log. ``is_appending`` is set during an append, when the high watermark may move already."""

    __slots__ = ("_clock", "_counters", "_log", "_on_fault", "_partition", "is_appending")

    def __init__(self, partition: int, log: CoordinatorLog, environment: RuntimeEnvironment[Any]) -> None:
        self._partition = partition
        self._log = log
        self._clock = environment.clock
        self._counters = environment.counters
        self._on_fault = environment.on_fault
        self.is_appending = False

    def append(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        end_offset: int,
        producer: tuple[int, int] | None = None,
        marker: EndTxnMarker | None = None,
    ) -> Exception | None:
        """Append ``records`` or ``marker``, after which the log must end at ``end_offset``. Return the error, or None."""
        started_ms = self._clock.monotonic_ms()
        self.is_appending = True
        try:
            now_ms = self._clock.now_ms()
            if marker is not None:
                found_offset = self._log.append_marker(marker, now_ms)
            elif producer is None:
                found_offset = self._log.append(records, now_ms)
            else:
                found_offset = self._log.append(records, now_ms, producer)
        except Exception as error:  # noqa: BLE001  any error fails the operations of the batch
            return self._failed(error)
        finally:
            self.is_appending = False
        if found_offset != end_offset:
            reason = f"the log ends at {found_offset}, not at {end_offset}: another writer has used it"
            return self._failed(KafkaError(ErrorCode.NOT_COORDINATOR, reason))
        self._counters.count_append(len(records) or 1, self._clock.monotonic_ms() - started_ms)
        return None

    def ends_at(self, offset: int) -> bool:
        """Return whether the log can be read, and ends at ``offset``."""
        try:
            return self._log.log_end_offset == offset
        except KafkaError:
            return False

    def _failed(self, error: Exception) -> Exception:
        self._counters.append_failures += 1
        if not isinstance(error, KafkaError) or error.code not in _REFUSALS:
            self._on_fault(f"the append to partition {self._partition} failed", error)
        return error
