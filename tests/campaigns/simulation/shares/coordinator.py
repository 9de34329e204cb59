"""The share coordinator: the real runtime and shards on logs in memory. It crashes, and its shards move."""

from __future__ import annotations

from bisect import bisect_left
from itertools import count
from typing import TYPE_CHECKING, Any

from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.states import ShardState
from odradek.coordinator.share.share_shard import ShareCoordinatorConfig, ShareShard, decode_share_state_record
from odradek.protocol.coordinator_records import ShareSnapshotValue, ShareUpdateValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.campaigns.simulation.groups.logs import LogsView, SimulatedLog, SimulatedLogs
from tests.campaigns.simulation.groups.replayed import compare, replay
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from odradek.coordinator.share.requests import ShareStateRequest
    from odradek.coordinator.share.share_shard import StoredShareState
    from odradek.coordinator.share.state import SharePartitionKey
    from odradek.timing.clock import VirtualClock
    from tests.campaigns.simulation.shares.plan import Plan

FORWARD = "the start offset never goes back"


class StateHistory:
    """The start offsets in one log."""

    def __init__(self) -> None:
        self._starts: dict[tuple[Any, ...], int] = {}

    def note(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Raise Violation if a record takes the start offset back."""
        record = decode_share_state_record(key, value)
        if record is None or not isinstance(record.value, (ShareSnapshotValue, ShareUpdateValue)):
            return
        share, start_offset = tuple(record.key), record.value.start_offset
        if start_offset < self._starts.get(share, -1):
            raise Violation(FORWARD, f"{share} is written with {start_offset} at {offset}, after {self._starts[share]}")
        self._starts[share] = start_offset

    def end_batch(self) -> None:
        """Nothing is kept by batch."""

    def without(self, end_offset: int, records: Iterable[tuple[int, bytes, bytes | None]]) -> StateHistory:
        """No tail is lost here."""
        raise NotImplementedError


class StateLog(SimulatedLog):
    """A partition of ``__share_group_state``, whose beginning can be removed."""

    def prune(self, offset: int) -> None:
        """Remove the batches below ``offset``."""
        self.log_start_offset = max(self.log_start_offset, offset)
        self._delete(range(bisect_left(self._last_offsets, offset)))


class Coordinator:
    """``is_up`` is False after a crash."""

    def __init__(self, plan: Plan, clock: VirtualClock, on_fault: Callable[[str, Exception], None]) -> None:
        self.logs = SimulatedLogs([StateLog(1_048_588, StateHistory()) for _ in range(plan.shards)])
        self.is_up = False
        self._plan = plan
        self._clock = clock
        self._on_fault = on_fault
        self._epochs = dict.fromkeys(range(plan.shards), 0)
        self._numbers = count(1)
        self._waiting: dict[int, Reply[Any]] = {}

    def start(self) -> None:
        """Load all shards."""
        self.is_up = True
        self.timer = Timer(self._clock)
        self.runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(
            "share", self.logs, self._make_shard, decode_share_state_record, self.timer, on_fault=self._on_fault
        )
        for partition in self._epochs:
            self.load(partition)

    def crash(self) -> None:
        """The logs are all there is."""
        self.is_up = False
        self.timer.close()
        self.logs.soon.clear()
        for partition in self._epochs:
            self.logs.on_high_watermark(partition, None)
        waiting, self._waiting = self._waiting, {}
        for reply in waiting.values():
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, "it has crashed"))

    def load(self, partition: int) -> None:
        """Lead the partition, at a higher epoch than before."""
        self._epochs[partition] += 1
        self.runtime.start_loading(partition, self._epochs[partition])

    def look_after(self) -> None:
        """Load again what could not be loaded, and let high watermarks move that nobody holds."""
        for log in self.logs.logs:
            if not log.is_held_back and log.high_watermark < log.log_end_offset:
                log.release()
        if self.is_up:
            for partition, state in self.runtime.states().items():
                if state is ShardState.FAILED:
                    self.load(partition)

    def ask(self, request: ShareStateRequest) -> Reply[Any]:
        """Decide. A crash cuts the connection of a request that waits for its answer."""
        reply: Reply[Any] = Reply()
        if not self.is_up:
            reply.complete(KafkaError(ErrorCode.NETWORK_EXCEPTION, "it has crashed"))
            return reply
        number = next(self._numbers)
        self._waiting[number] = reply

        def answer(outcome: object) -> None:
            if self._waiting.pop(number, None) is not None:
                reply.complete(outcome)

        self.runtime.write(request.key.coordinator_key, request.decide).when_done(answer)
        return reply

    def active(self) -> list[HostedShard[ShareShard]]:
        """Return the shards that are loaded."""
        hosted = self.runtime._hosted.values() if self.is_up else ()
        return [each for each in hosted if each.state is ShardState.ACTIVE]

    def stored(self, key: SharePartitionKey) -> StoredShareState | None:
        """Return the state of a share partition, if its shard is loaded."""
        partition = self.runtime.partition_for(key.coordinator_key)
        return next((each.shard.partitions.get(key) for each in self.active() if each.partition == partition), None)

    def check_replayed(self) -> None:
        """Compare each shard with what its log gives. Raises Violation."""
        for hosted in self.active():
            log: Any = hosted.log
            if hosted.has_open_batch or log.failures or log.read_failures:
                continue
            fresh = replay(LogsView(self.logs.logs), hosted.partition, self._make_shard, decode_share_state_record)
            # Pruning takes updates before a cold snapshot from the log, so their number is not compared.
            compare(
                "share partitions",
                *({key: state._replace(updates=0) for key, state in shard.partitions.items()} for shard in (hosted.shard, fresh)),
            )

    def partition_count(self, topic_id: UUID) -> int:
        """See Topics."""
        return self._plan.partitions

    def _make_shard(self, _partition: int, context: ShardContext) -> ShareShard:
        config = ShareCoordinatorConfig(
            snapshot_update_records_per_snapshot=self._plan.updates_per_snapshot,
            cold_partition_snapshot_interval_ms=5_000,
            state_topic_prune_interval_ms=self._plan.prune_interval_ms,
        )
        return ShareShard(context, config, self, lambda partition, offset: self.logs.logs[partition].prune(offset))  # type: ignore[attr-defined]
