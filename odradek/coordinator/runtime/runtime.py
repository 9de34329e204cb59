"""The runtime: routes operations to shards, and loads and unloads the shards.

A shard lives on each partition of the coordinator's topic that is led here. An operation is routed by its group id or
transactional id, or names the partition itself. Kafka's counterpart is CoordinatorRuntime (coordinator-common); its threads,
queues and event accumulator have no counterpart here, as there is one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from odradek.coordinator.runtime.environment import RuntimeEnvironment, ShardT
from odradek.coordinator.runtime.hosted_shard import HostedShard
from odradek.coordinator.runtime.loader import LoadQueue
from odradek.coordinator.runtime.states import ShardState, not_coordinator
from odradek.protocol import hashing
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.ports import CoordinatorLogs
    from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
    from odradek.timing.timer import Timer

T = TypeVar("T")

# The bytes read at a time while loading: few enough not to block the loop.
DEFAULT_LOAD_BUFFER_BYTES: Final = 1024 * 1024
DEFAULT_WRITE_TIMEOUT_MS: Final = 5_000
_MAX_KNOWN_IDS: Final = 16_384


def _ignore() -> None:
    """No-op callback."""


class CoordinatorRuntime(Generic[ShardT]):
    """The shards of one coordinator. Loop thread only.

    ``decode`` turns the log's bytes into a record, or None if the key's version is unknown. ``on_fault`` is called for internal
    errors: a failed append, an unreadable log, an exception in a callback. ``on_bulk_load`` is called each time some thousand
    more records have been replayed into lasting state. If replicas are silent for ``write_timeout_ms``, waiting requests fail,
    and clients look for the coordinator again.
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
        on_bulk_load: Callable[[], object] = _ignore,
        write_timeout_ms: int = DEFAULT_WRITE_TIMEOUT_MS,
    ) -> None:
        self.name = name
        self._logs = logs
        self._on_fault = on_fault
        self._environment = RuntimeEnvironment(
            logs, make_shard, decode, timer, on_fault, load_buffer_bytes, on_bulk_load, write_timeout_ms
        )
        self.counters = self._environment.counters
        self._hosted: dict[int, HostedShard[ShardT]] = {}
        # Leader epochs of the partitions that are led here and whose log cannot be opened.
        self._unopened: dict[int, int] = {}
        self._loads = LoadQueue(self._environment)
        # A cache of partitions by id, cleared when partitions come or go. Most requests repeat an earlier id.
        self._partition_of: dict[str, int] = {}

    @property
    def is_loading(self) -> bool:
        """Return whether any shard's load is under way."""
        return len(self._loads) > 0

    def partitions(self) -> list[int]:
        """Return the partitions coordinated here: loading, active or failed."""
        return [*self._hosted, *self._unopened]

    def states(self) -> dict[int, ShardState]:
        """Return the state of each of these partitions."""
        states = dict.fromkeys(self._unopened, ShardState.FAILED)
        return states | {partition: hosted.state for partition, hosted in self._hosted.items()}

    def partition_for(self, coordinated_id: str) -> int:
        """Return the partition that a group or transactional id belongs to.

        KafkaError: COORDINATOR_NOT_AVAILABLE if the topic is missing and cannot be created.
        """
        known = self._partition_of.get(coordinated_id)
        if known is not None:
            return known
        try:
            partition = hashing.partition_for(coordinated_id, self._logs.partition_count)
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.reason) from error
        if partition in self._hosted:
            # Made-up ids must not fill the memory.
            if len(self._partition_of) >= _MAX_KNOWN_IDS:
                self._partition_of.clear()
            self._partition_of[coordinated_id] = partition
        return partition

    def write(
        self,
        target: str | int,
        operation: Callable[[ShardT], CoordinatorResult[T]],
        reply: Reply[T | KafkaError] | None = None,
    ) -> Reply[T | KafkaError]:
        """Run ``operation`` on the shard of ``target``, a group or transactional id or a partition. HOT.

        The operation decides within this call. The shard's ``WriteOrder`` says when its records are replayed and appended. The
        reply gets the response once the high watermark has passed the records; without records and with nothing pending, by the
        end of this call. Or it gets a KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, or
        the operation's own error. Pass ``reply`` if the operation holds it for a later operation to answer.
        """
        if reply is None:
            reply = Reply()
        try:
            partition = target if isinstance(target, int) else self.partition_for(target)
        except KafkaError as error:
            reply.complete(error)
            return reply
        hosted = self._hosted.get(partition)
        if hosted is None:
            reply.complete(not_coordinator())
        else:
            hosted.write(operation, reply)
        return reply

    def read(self, target: str | int, operation: Callable[[ShardT, int], T]) -> T:
        """Return the result of ``operation(shard, committed_offset)``, which looks at the state at that offset.

        Raises KafkaError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, or the operation's own error.
        """
        partition = target if isinstance(target, int) else self.partition_for(target)
        hosted = self._hosted.get(partition)
        if hosted is None:
            raise not_coordinator()
        return hosted.read(operation)

    def settle(self, target: str) -> None:
        """Run the callbacks that follow the answers given so far by the shard of ``target``. Operations do so themselves."""
        try:
            hosted = self._hosted.get(self.partition_for(target))
        except KafkaError:
            return
        if hosted is not None:
            hosted.settle()

    def start_loading(self, partition: int, leader_epoch: int) -> None:
        """Load the shard of ``partition``, now led here. An older epoch's shard is unloaded first, any other is kept."""
        self._partition_of.clear()
        known = self._hosted.get(partition)
        if known is not None:
            if leader_epoch < known.leader_epoch or (leader_epoch == known.leader_epoch and known.state is not ShardState.FAILED):
                return
            self._close(known)
            del self._hosted[partition]
        elif leader_epoch < self._unopened.get(partition, leader_epoch):
            return
        self._load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Unload a partition that is no longer led here, since ``leader_epoch`` if given. A newer shard is kept.

        Waiting requests are answered NOT_COORDINATOR. Deadlines and records not yet appended are dropped.
        """
        hosted = self._hosted.get(partition)
        if hosted is not None and (leader_epoch is None or hosted.leader_epoch < leader_epoch):
            del self._hosted[partition]
            self._partition_of.clear()
            self._close(hosted)
        elif leader_epoch is None or self._unopened.get(partition, leader_epoch) < leader_epoch:
            self._unopened.pop(partition, None)

    def close(self) -> None:
        """End the turn, which appends the decided records; then unload all shards."""
        self._environment.turn_end.run()
        for partition in self.partitions():
            self.unload(partition)

    def _load(self, partition: int, leader_epoch: int) -> None:
        self._unopened.pop(partition, None)
        try:
            hosted = HostedShard(self._environment, partition, leader_epoch, self._reload)
        except KafkaError as error:
            self.counters.failed_loads += 1
            self._on_fault(f"cannot open partition {partition}", error)
            self._unopened[partition] = leader_epoch
            return
        self._hosted[partition] = hosted
        self._loads.add(hosted)

    def _close(self, hosted: HostedShard[ShardT]) -> None:
        self.counters.unloads += 1
        hosted.close(ShardState.CLOSED)

    def _reload(self, hosted: HostedShard[ShardT]) -> None:
        self._close(hosted)
        if self._hosted.get(hosted.partition) is hosted:
            del self._hosted[hosted.partition]
            self._load(hosted.partition, hosted.leader_epoch)
