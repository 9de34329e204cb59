"""The open batch of a shard: records replayed but not yet appended, and the operations that wait for them.

``LogWriter`` appends it to the log, and detects records of another writer.

The replies of operations are completed once their records are committed; if the append fails, the replies fail. A reply's
callback may submit the next operation, whose append may complete further replies. Those are queued, so replies are completed in
the order of the decisions.

Until their records are committed, operations are deferred (Kafka: DeferredEventQueue).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from odradek.coordinator.runtime.result import DEFERRED_RESPONSE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plain_batches import uncompressed_size
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from odradek.coordinator.runtime.environment import RuntimeEnvironment
    from odradek.coordinator.runtime.ports import CoordinatorLog
    from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult, EndTxnMarker


class DeferredEvent:
    """A decided operation, and its reply."""

    __slots__ = ("reply", "result")

    def __init__(self, result: CoordinatorResult[Any], reply: Reply[Any]) -> None:
        self.result = result
        self.reply = reply


class DeferredEventQueue:
    """Events, sorted by the high watermark offset they wait for, with a deadline each. Loop thread only."""

    __slots__ = ("_events", "_overdue")

    def __init__(self) -> None:
        # Offsets and deadlines ascend.
        self._events: deque[tuple[int, float, list[DeferredEvent]]] = deque()
        # The earliest events, by offset. Their deadline has passed, but their records may still be committed.
        self._overdue: deque[tuple[int, list[DeferredEvent]]] = deque()

    def add(self, offset: int, deadline_ms: float, events: list[DeferredEvent]) -> None:
        """Add events that wait for ``offset``. Neither offset nor deadline may be lower than those of an event added before."""
        self._events.append((offset, deadline_ms, events))

    def take_completed(self, offset: int) -> list[DeferredEvent]:
        """Remove and return the events for which a high watermark of ``offset`` is enough."""
        completed: list[DeferredEvent] = []
        overdue = self._overdue
        while overdue and overdue[0][0] <= offset:
            completed += overdue.popleft()[1]
        events = self._events
        while events and events[0][0] <= offset:
            completed += events.popleft()[2]
        return completed

    def next_deadline_ms(self) -> float | None:
        """Return the first deadline that has not passed, or None."""
        return self._events[0][1] if self._events else None

    def pass_deadline(self, now_ms: float) -> list[DeferredEvent]:
        """Return the events whose deadline has passed by ``now_ms``. They stay in the queue."""
        late: list[DeferredEvent] = []
        events = self._events
        while events and events[0][1] <= now_ms:
            offset, _, each = events.popleft()
            self._overdue.append((offset, each))
            late += each
        return late

    def take_all(self) -> list[DeferredEvent]:
        """Remove and return all events."""
        events = [event for _, each in self._overdue for event in each] + [event for _, _, each in self._events for event in each]
        self._overdue.clear()
        self._events.clear()
        return events


class OwnReply(Reply[Any]):
    """The reply to an operation of the shard itself, such as an expired deadline's. It has no time limit."""

    __slots__ = ()


class Answers:
    """The replies of one shard. A hook or callback that raises is reported; the others are still called."""

    __slots__ = ("_committed", "_is_delivering", "_on_fault", "_partition")

    def __init__(self, partition: int, on_fault: Callable[[str, Exception], None]) -> None:
        self._partition = partition
        self._on_fault = on_fault
        self._committed: deque[DeferredEvent] = deque()
        self._is_delivering = False

    def commit(self, events: Iterable[DeferredEvent]) -> None:
        """Call the hooks of events whose records are committed, and queue the events for ``deliver``."""
        for event in events:
            if event.result.on_commit is not None:
                self.guard(event.result.on_commit)
            self._committed.append(event)

    def deliver(self) -> None:
        """Complete the replies of the committed events."""
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._committed:
                event = self._committed.popleft()
                self.complete(event.result, event.reply)
        finally:
            self._is_delivering = False

    def complete(self, result: CoordinatorResult[Any], reply: Reply[Any]) -> None:
        """Give the responses of one result. HOT."""
        if result.responses:
            self.give(result.responses)
        if result.response is not DEFERRED_RESPONSE:
            self._give(reply, result.response)

    def give(self, responses: Iterable[tuple[Reply[Any], object]]) -> None:
        """Complete each reply with its response."""
        for reply, response in responses:
            self._give(reply, response)

    def fail(self, events: list[DeferredEvent], error: KafkaError) -> None:
        """Correct the state, latest decision first; then fail the replies, in the order of the decisions."""
        for event in events[::-1]:
            hook = event.result.on_failure
            if hook is not None:
                try:
                    hook(error)
                except Exception as fault:  # noqa: BLE001  it is not the fault of the others
                    self._report(fault)
        for event in events:
            for reply, _ in event.result.responses:
                self._give(reply, error)
            self._give(event.reply, error)

    def give_up(self, events: Iterable[DeferredEvent], error: KafkaError) -> None:
        """Fail the operations that wait for a commit. Their records stay in the log, and may still be committed."""
        for event in events:
            for reply, _ in event.result.responses:
                self._give(reply, error)
            if not isinstance(event.reply, OwnReply):
                self._give(event.reply, error)

    def give_up_committed(self, error: KafkaError) -> None:
        """Fail the committed operations that ``deliver`` has not answered yet: their coordinator is no more."""
        committed = list(self._committed)
        self._committed.clear()
        self.give_up(committed, error)

    def guard(self, callback: Callable[[], object]) -> None:
        """Call ``callback``; report what it raises."""
        try:
            callback()
        except Exception as error:  # noqa: BLE001  it is not the fault of the others
            self._report(error)

    def _give(self, reply: Reply[Any], response: object) -> None:
        if reply.done:
            # One reply may appear in two results: one holds a JoinGroup, another answers it.
            return
        try:
            reply.complete(response)
        except Exception as error:  # noqa: BLE001  it is not the others' fault
            self._report(error)

    def _report(self, error: Exception) -> None:
        self._on_fault(f"a callback of partition {self._partition} failed", error)


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
