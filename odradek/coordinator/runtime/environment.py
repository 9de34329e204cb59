"""The common environment of one runtime's parts: the topic's logs, the clock, factories of shards and records, counters.

``TurnEnd`` runs at the end of a turn of the event loop. One scheduled call appends the open batches and runs the work that
follows an answer. By then everything that arrived in this turn is handled and answered. New requests come later: event loops run
``call_soon`` callbacks before they poll again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from odradek.coordinator.runtime.ports import CoordinatorShard

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.ports import CoordinatorLogs
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.timing.timer import Timer


class TurnEnd:
    """The callbacks for the end of this turn, in order. Loop thread only."""

    __slots__ = ("_call_soon", "_callbacks", "_on_fault")

    def __init__(self, call_soon: Callable[[Callable[[], None]], None], on_fault: Callable[[str, Exception], None]) -> None:
        self._call_soon = call_soon
        self._on_fault = on_fault
        self._callbacks: list[Callable[[], object]] = []

    def call(self, callback: Callable[[], object]) -> None:
        """Call back when the turn ends. A callback that raises does not stop the others."""
        self._callbacks.append(callback)
        if len(self._callbacks) == 1:
            self._call_soon(self.run)

    def run(self) -> None:
        """End the turn. A callback added meanwhile is for the next one."""
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # noqa: BLE001  it is not the fault of the others
                self._on_fault("a callback at the end of a turn failed", error)


@dataclass(slots=True)
class RuntimeCounters:
    """Numbers that only grow, and the last and the longest of the times measured, in ms.

    ``skipped_records`` counts records with an unknown key version.
    """

    appends: int = 0
    appended_records: int = 0
    append_failures: int = 0
    append_ms: float = 0.0
    longest_append_ms: float = 0.0
    loads: int = 0
    failed_loads: int = 0
    loaded_records: int = 0
    skipped_records: int = 0
    loaded_bytes: int = 0
    load_ms: float = 0.0
    last_load_ms: float = 0.0
    longest_load_ms: float = 0.0
    unloads: int = 0

    def count_append(self, records: int, duration_ms: float) -> None:
        """Count an appended batch."""
        self.appends += 1
        self.appended_records += records
        self.append_ms += duration_ms
        self.longest_append_ms = max(self.longest_append_ms, duration_ms)

    def count_load(self, records: int, skipped_records: int, size_bytes: int, duration_ms: float) -> None:
        """Count a loaded shard."""
        self.loads += 1
        self.loaded_records += records
        self.skipped_records += skipped_records
        self.loaded_bytes += size_bytes
        self.load_ms += duration_ms
        self.last_load_ms = duration_ms
        self.longest_load_ms = max(self.longest_load_ms, duration_ms)


ShardT = TypeVar("ShardT", bound=CoordinatorShard)


class RuntimeEnvironment(Generic[ShardT]):
    """The environment, made once and passed to each part. ``CoordinatorRuntime`` documents the callables."""

    __slots__ = (
        "clock",
        "counters",
        "decode",
        "load_buffer_bytes",
        "logs",
        "make_shard",
        "on_fault",
        "on_much_loaded",
        "timer",
        "turn_end",
        "write_timeout_ms",
    )

    def __init__(
        self,
        logs: CoordinatorLogs,
        make_shard: Callable[[int, ShardContext], ShardT],
        decode: Callable[[bytes, bytes | None], CoordinatorRecord | None],
        timer: Timer,
        on_fault: Callable[[str, Exception], None],
        load_buffer_bytes: int,
        on_much_loaded: Callable[[], object],
        write_timeout_ms: int,
    ) -> None:
        self.logs = logs
        self.make_shard = make_shard
        self.decode = decode
        self.timer = timer
        self.clock = timer.clock
        self.on_fault = on_fault
        self.load_buffer_bytes = load_buffer_bytes
        self.on_much_loaded = on_much_loaded
        self.write_timeout_ms = write_timeout_ms
        self.counters = RuntimeCounters()
        self.turn_end = TurnEnd(logs.call_soon, on_fault)
