"""The runtime: which shard an operation is for, and the shards' comings and goings.

A shard lives on each partition of the coordinator's topic that is led here. An operation is routed by its group id or
transactional id, or names the partition itself. Kafka's counterpart is CoordinatorRuntime (coordinator-common); its threads,
queues and event accumulator have none here, for there is one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from odradek.coordinator.runtime import hashing
from odradek.coordinator.runtime.counters import RuntimeCounters
from odradek.coordinator.runtime.hosted_shard import HostedShard, ShardT
from odradek.coordinator.runtime.loader import LoadQueue
from odradek.coordinator.runtime.states import ShardState, not_coordinator, unavailable
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.ports import CoordinatorLogs
    from odradek.coordinator.runtime.record import CoordinatorRecord
    from odradek.coordinator.runtime.result import Result
    from odradek.coordinator.runtime.shard_context import ShardContext
    from odradek.timing.timer import Timer

T = TypeVar("T")

# Read at a time while loading: as much as does not keep the loop waiting.
DEFAULT_LOAD_BUFFER_BYTES: Final = 1024 * 1024
_MAX_KNOWN_IDS: Final = 16_384


class CoordinatorRuntime(Generic[ShardT]):
    """The shards of one coordinator. Loop thread only.

    ``decode`` makes a record of the log's bytes, None where it does not know the key's version. ``on_fault`` is told of what
    should not happen, and goes on happening to nobody else: a failed append, an unreadable log, an exception in a callback.
    """

    def __init__(
        self,
        name: str,
        logs: CoordinatorLogs,
        make_shard: Callable[[int, ShardContext], ShardT],
        decode: Callable[[bytes, bytes | None], CoordinatorRecord | None],
        timer: Timer,
        *,
        on_fault: Callable[[str, Exception], None],
        load_buffer_bytes: int = DEFAULT_LOAD_BUFFER_BYTES,
    ) -> None:
        self.name = name
        self.logs = logs
        self.make_shard = make_shard
        self.decode = decode
        self.timer = timer
        self.clock = timer.clock
        self.on_fault = on_fault
        self.load_buffer_bytes = load_buffer_bytes
        self.counters = RuntimeCounters()
        self._hosted: dict[int, HostedShard[ShardT]] = {}
        self._loads = LoadQueue(self)
        self._unflushed: list[HostedShard[ShardT]] = []
        # Partitions by id, until partitions come or go: each request has an id, and most the id of one before.
        self._partition_of: dict[str, int] = {}

    @property
    def is_loading(self) -> bool:
        """Whether any shard's load is under way."""
        return len(self._loads) > 0

    def partitions(self) -> list[int]:
        """The partitions whose coordinator is, or will be, here: loading, active or failed."""
        return list(self._hosted)

    def states(self) -> dict[int, ShardState]:
        """How each of them is."""
        return {partition: hosted.state for partition, hosted in self._hosted.items()}

    def partition_for(self, coordinated_id: str) -> int:
        """The partition that a group or transactional id belongs to.

        KafkaError: COORDINATOR_NOT_AVAILABLE where the topic is not there and cannot be created.
        """
        known = self._partition_of.get(coordinated_id)
        if known is not None:
            return known
        try:
            partition = hashing.partition_for(coordinated_id, self.logs.partition_count)
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.reason) from error
        if partition in self._hosted:
            # So that made-up ids cannot fill the memory.
            if len(self._partition_of) >= _MAX_KNOWN_IDS:
                self._partition_of.clear()
            self._partition_of[coordinated_id] = partition
        return partition

    def write(
        self,
        target: str | int,
        operation: Callable[[ShardT], Result[T]],
        respond: Callable[[T | KafkaError], None],
    ) -> None:
        """Run ``operation`` on the shard of ``target``, a group or transactional id or a partition.

        It decides now and its records are replayed now; they are appended, together with those of the operations that follow in
        the same turn of the loop, when that turn is over, or at once if its result says so. ``respond`` gets the result's
        response once the high watermark has passed the records (within this call where there are none and nothing is pending),
        or a KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, or what the operation raised.
        """
        try:
            partition = target if isinstance(target, int) else self.partition_for(target)
        except KafkaError as error:
            respond(error)
            return
        hosted = self._hosted.get(partition)
        if hosted is None:
            respond(not_coordinator())
        else:
            hosted.write(operation, respond)

    def read(self, target: str | int, operation: Callable[[ShardT, int], T]) -> T:
        """What ``operation`` makes of the shard and its committed offset, to look at the state there is at that offset.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, or what the operation raises.
        """
        partition = target if isinstance(target, int) else self.partition_for(target)
        hosted = self._hosted.get(partition)
        if hosted is None:
            raise not_coordinator()
        if hosted.state is not ShardState.ACTIVE:
            raise unavailable(hosted.state)
        return operation(hosted.shard, hosted.committed_offset)

    def start_loading(self, partition: int, leader_epoch: int) -> None:
        """This broker leads ``partition``: load its shard. One of an older epoch is unloaded first; of this or a newer, kept."""
        self._partition_of.clear()
        known = self._hosted.get(partition)
        if known is not None:
            if leader_epoch < known.leader_epoch or (leader_epoch == known.leader_epoch and known.state is not ShardState.FAILED):
                return
            self._close(known)
        self._load(HostedShard(self, partition, leader_epoch))

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """This broker does not lead ``partition`` any more, since ``leader_epoch`` if given. A shard that is newer is kept.

        Who waits is answered NOT_COORDINATOR, deadlines are dropped, and what was not yet appended is forgotten.
        """
        hosted = self._hosted.get(partition)
        if hosted is not None and (leader_epoch is None or hosted.leader_epoch < leader_epoch):
            del self._hosted[partition]
            self._partition_of.clear()
            self._close(hosted)

    def reload(self, hosted: HostedShard[ShardT]) -> None:
        """Told by a shard whose state and log have parted: begin again from the log."""
        self._close(hosted)
        if self._hosted.get(hosted.partition) is hosted:
            self._load(HostedShard(self, hosted.partition, hosted.leader_epoch))

    def flush_soon(self, hosted: HostedShard[ShardT]) -> None:
        """Told by a shard that has opened a batch."""
        self._unflushed.append(hosted)
        if len(self._unflushed) == 1:
            self.logs.call_soon(self.flush)

    def flush(self) -> None:
        """Append what is decided and not yet appended."""
        unflushed, self._unflushed = self._unflushed, []
        for hosted in unflushed:
            hosted.flush()

    def close(self) -> None:
        """Append what is decided, then let go of all shards."""
        self.flush()
        for partition in self.partitions():
            self.unload(partition)

    def _load(self, hosted: HostedShard[ShardT]) -> None:
        self._hosted[hosted.partition] = hosted
        try:
            hosted.start_loading()
            self._loads.add(hosted)
        except KafkaError as error:
            self.counters.failed_loads += 1
            self.on_fault(f"partition {hosted.partition} cannot be opened", error)
            hosted.close(ShardState.FAILED)

    def _close(self, hosted: HostedShard[ShardT]) -> None:
        self.counters.unloads += 1
        hosted.close(ShardState.CLOSED)
