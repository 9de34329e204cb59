"""The environment of one runtime's parts, and the context each shard is made with.

The parts share the topic's logs, the clock, the factories of shards and records, and counters. A shard's context has its
partition, the registry of its timelines, the clock, and its deadlines.

A deadline has a key; setting it again replaces it. When it expires, its operation decides like any other, and its records are
appended and replayed. Unloading the shard drops all its deadlines.

``TurnEnd`` runs at the end of a turn of the event loop. One scheduled call appends the open batches and runs the work that
follows an answer. By then everything that arrived in this turn is handled and answered. New requests come later: event loops
run ``call_soon`` callbacks before they poll again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from odradek.coordinator.runtime.ports import CoordinatorShard
from odradek.coordinator.runtime.timeline import SnapshotRegistry
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from odradek.coordinator.runtime.ports import CoordinatorLogs
    from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
    from odradek.timing.clock import Clock
    from odradek.timing.reply import Reply
    from odradek.timing.timer import Timer, TimerTask

# The delay before a deadline's operation is retried after a failed append; as in Kafka.
RETRY_BACKOFF_MS: Final = 500


class ShardContext:
    """The context of one shard, from a load to the next unload. ``write`` runs an operation on the shard, as a request would."""

    __slots__ = ("_after_answer", "_tasks", "clock", "is_open", "leader_epoch", "partition", "snapshots", "timer", "write")

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        timer: Timer,
        write: Callable[[Callable[[], CoordinatorResult[Any]]], Reply[Any]],
        after_answer: Callable[[Callable[[], object]], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.clock: Clock = timer.clock
        self.snapshots = SnapshotRegistry()
        self.write = write
        self.is_open = True
        self.timer = timer
        self._after_answer = after_answer
        self._tasks: dict[Hashable, TimerTask] = {}

    def __len__(self) -> int:
        """Return the number of deadlines set."""
        return len(self._tasks)

    def after_answer(self, callback: Callable[[], object]) -> None:
        """Call back once the answers of this operation have been delivered, unless the shard is unloaded by then.

        The callback runs when this turn of the event loop ends, or when the shard's next operation is submitted, whichever is
        first. So the next operation always finds it done.
        """
        self._after_answer(callback)

    def schedule(
        self, key: Hashable, delay_ms: float, operation: Callable[[], CoordinatorResult[Any]], *, retry: bool = True
    ) -> None:
        """Run ``operation`` in ``delay_ms``, replacing the deadline under ``key``. Does nothing once the shard is unloaded.

        If the append fails, the operation is retried after RETRY_BACKOFF_MS, unless ``retry`` is False or the key has been set
        again.
        """
        if not self.is_open:
            return
        task = self._tasks.get(key)
        if task is not None:
            task.cancel()
        self._tasks[key] = self.timer.call_after(delay_ms, lambda: self._expire(key, operation, retry=retry))

    def cancel(self, key: Hashable) -> bool:
        """Drop the deadline. Return False if there is none."""
        task = self._tasks.pop(key, None)
        return task is not None and task.cancel()

    def is_scheduled(self, key: Hashable) -> bool:
        """Return whether a deadline is set under ``key``."""
        return key in self._tasks

    def close(self) -> None:
        """Drop all deadlines; none can be set from now on."""
        self.is_open = False
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _expire(self, key: Hashable, operation: Callable[[], CoordinatorResult[Any]], *, retry: bool) -> None:
        del self._tasks[key]

        def finished(outcome: object) -> None:
            if retry and isinstance(outcome, KafkaError) and key not in self._tasks:
                self.schedule(key, RETRY_BACKOFF_MS, operation)

        self.write(operation).when_done(finished)


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
        "on_bulk_load",
        "on_fault",
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
        on_bulk_load: Callable[[], object],
        write_timeout_ms: int,
    ) -> None:
        self.logs = logs
        self.make_shard = make_shard
        self.decode = decode
        self.timer = timer
        self.clock = timer.clock
        self.on_fault = on_fault
        self.load_buffer_bytes = load_buffer_bytes
        self.on_bulk_load = on_bulk_load
        self.write_timeout_ms = write_timeout_ms
        self.counters = RuntimeCounters()
        self.turn_end = TurnEnd(logs.call_soon, on_fault)
