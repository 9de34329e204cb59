"""Appends the batches of one shard to its log: counted, and checked for records that somebody else wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.runtime.environment import RuntimeEnvironment
    from odradek.coordinator.runtime.marker import EndTxnMarker
    from odradek.coordinator.runtime.ports import CoordinatorLog

# A fenced producer or transaction coordinator is told so: no fault of the broker.
_REFUSALS: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class LogWriter:
    """``is_appending`` holds within an append: the high watermark may move by then."""

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
        """Append ``records``, or ``marker``, after which the log ends at ``end_offset``; the error where that failed."""
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
        except Exception as error:  # noqa: BLE001  whatever it is, the operations of the batch have failed
            return self._failed(error)
        finally:
            self.is_appending = False
        if found_offset != end_offset:
            reason = f"the log ends at {found_offset}, and not at {end_offset}: somebody else wrote to it"
            return self._failed(KafkaError(ErrorCode.NOT_COORDINATOR, reason))
        self._counters.count_append(len(records) or 1, self._clock.monotonic_ms() - started_ms)
        return None

    def ends_at(self, offset: int) -> bool:
        """Whether the log can be read, and ends at ``offset``."""
        try:
            return self._log.log_end_offset == offset
        except KafkaError:
            return False

    def _failed(self, error: Exception) -> Exception:
        self._counters.append_failures += 1
        if not isinstance(error, KafkaError) or error.code not in _REFUSALS:
            self._on_fault(f"the append to partition {self._partition} failed", error)
        return error
