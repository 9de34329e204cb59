"""The state that odradek's coordinators load from their topics does not depend on how these were compacted."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from odradek.broker.coordination.coordinator_logs import PartitionLog
from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.group_shard import GroupShard
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.runtime.environment import ShardContext
from odradek.coordinator.runtime.result import decode_group_record
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.states import ShardState
from odradek.coordinator.transaction.transaction_shard import TransactionShard, decode_transaction_record
from odradek.coordinator.transaction.transactions import TransactionConfig
from odradek.storage.log.log import Log
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.campaigns.kafka_tools import compaction_workload as workload
from tests.campaigns.kafka_tools.cleaned import CleanedComparison
from tests.campaigns.kafka_tools.opened import open_log
from tests.campaigns.simulation.groups.broker import REPORTS
from tests.campaigns.simulation.groups.replayed import image_of

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


class _OneLog:
    """A topic of one partition without writers. Part of ``coordinator.runtime.ports``."""

    partition_count = 1

    def __init__(self, log: Log) -> None:
        self._partition = SimpleNamespace(require_log=lambda: log, high_watermark=log.log_end_offset)
        self.soon: list[Callable[[], None]] = []

    def open(self, _partition: int) -> PartitionLog:
        return PartitionLog(self._partition, 0)

    def on_high_watermark(self, _partition: int, _callback: Callable[[], None] | None) -> None:
        pass

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)


def compare_shards(comparison: CleanedComparison, sides: Mapping[str, Path]) -> None:
    """Compare the shards of each side with those of the first."""
    for topic, state in ((GROUPS, _group_state), (TRANSACTIONS, _transaction_state)):
        for number in range(workload.PARTITIONS[topic]):
            comparison.shards += 1
            (first, expected), *others = ((name, state(data / f"{topic}-{number}")) for name, data in sides.items())
            for name, loaded in others:
                for part, value in expected.items():
                    comparison.expect_same(f"{topic}-{number} {part}, {name} and {first}", loaded[part], value)


def _group_state(directory: Path) -> dict[str, list[Any]]:
    def make(context: ShardContext) -> GroupShard:
        return GroupShard(context, config=GroupConfig, reports=REPORTS, new_id=str, offset_config=OffsetConfig())

    shard = _load(directory, make, decode_group_record)
    offsets = [
        (group, topic, partition, value)
        for group, topics in shard.offsets.by_group.items()
        for topic, partitions in topics.items()
        for partition, value in partitions.items()
    ]
    pending = [
        (producer_id, key, value)
        for producer_id, pending in shard.offsets.pending._by_producer.items()
        for key, value in pending.items()
    ]
    return {
        "groups": sorted((name, _stored(group)) for name, group in shard.groups.stored.items()),
        "live groups": sorted((name, group.state, group.generation) for name, group in shard.groups.live.items()),
        "offsets": sorted(offsets, key=lambda each: each[:3]),
        "pending offsets": sorted(pending, key=lambda each: each[:2]),
    }


def _stored(group: Any) -> Any:
    return image_of(group) if isinstance(group, ConsumerGroup) else group


def _transaction_state(directory: Path) -> dict[str, list[Any]]:
    def make(context: ShardContext) -> TransactionShard:
        writer = SimpleNamespace(write_marker=partial(_no_marker, directory))
        return TransactionShard(context, TransactionConfig(), new_producer_id=int, marker_writer=writer, reports=REPORTS)

    shard = _load(directory, make, decode_transaction_record)
    return {"transactional ids": sorted(shard.transactions.by_id.items())}


def _no_marker(directory: Path, topic: str, partition: int, marker: object) -> None:
    raise AssertionError(f"{directory}: {marker} for {topic}-{partition}, of a transaction that Kafka has ended")


def _load(directory: Path, make: Callable[[ShardContext], Any], decode: Any) -> Any:
    """The shard loaded from the log in ``directory``."""
    log = open_log(directory, clean=True, warnings=[])
    shards: list[Any] = []

    def make_shard(_partition: int, context: ShardContext) -> Any:
        shards.append(make(context))
        return shards[-1]

    def on_fault(event: str, error: Exception) -> None:
        raise AssertionError(f"{directory}: {event}") from error

    logs = _OneLog(log)
    runtime = CoordinatorRuntime("compared", logs, make_shard, decode, Timer(VirtualClock()), on_fault=on_fault)
    runtime.start_loading(0, 0)
    while logs.soon:
        logs.soon.pop(0)()
    assert runtime.states()[0] is ShardState.ACTIVE
    log.close(clean=False, now_ms=0)
    return shards[0]
