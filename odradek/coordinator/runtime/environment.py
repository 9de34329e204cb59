"""What the parts of one runtime share: the topic's logs, the clock, what makes a shard and a record, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from odradek.coordinator.runtime.counters import RuntimeCounters
from odradek.coordinator.runtime.shard import CoordinatorShard
from odradek.coordinator.runtime.turn_end import TurnEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.ports import CoordinatorLogs
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.timing.timer import Timer

ShardT = TypeVar("ShardT", bound=CoordinatorShard)


class RuntimeEnvironment(Generic[ShardT]):
    """Made once, and passed to each part. See ``CoordinatorRuntime`` for what the callables do."""

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
