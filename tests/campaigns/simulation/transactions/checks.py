"""What holds at any time: last stable offsets are where they have to be, and shards have the state that their logs say.

Both sides are compared with the witness, who knows the logs' bytes only, and with a fresh shard that the runtime's own loader
fills from the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.coordination.coordinator_logs import PartitionLog
from odradek.controller.metadata.topic import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.coordinator.runtime.result import decode_group_record
from odradek.coordinator.transaction.transaction_shard import TransactionShard, decode_transaction_record
from odradek.coordinator.transaction.transactions import TransactionConfig
from odradek.protocol.coordinator_records import OffsetCommitKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.hashing import partition_for
from tests.campaigns.simulation.groups.broker import REPORTS
from tests.campaigns.simulation.groups.replayed import compare, make_group_shard, replay
from tests.campaigns.simulation.transactions.server import Loop
from tests.campaigns.simulation.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.coordinator.group.group_shard import GroupShard
    from odradek.coordinator.runtime.environment import ShardContext
    from odradek.coordinator.runtime.hosted_shard import HostedShard
    from odradek.coordinator.runtime.result import EndTxnMarker
    from tests.campaigns.simulation.transactions.server import Server
    from tests.campaigns.simulation.transactions.world import World


def check_stable_offset(world: World, name: tuple[str, int]) -> None:
    """The last stable offset is where the oldest transaction begins that has not ended below the high watermark, or that.

    Raises Violation.
    """
    partition = None if world.server is None else world.server.partitions.get(*name)
    seen = world.witness.partitions.get(name)
    if partition is None or seen is None or partition.log is None:
        return
    first_unstable = seen.first_unstable_offset(partition.high_watermark)
    expected = partition.high_watermark if first_unstable is None else min(first_unstable, partition.high_watermark)
    if partition.last_stable_offset != expected:
        what = f"{name}: it is {partition.last_stable_offset} of {partition.high_watermark}, open are {seen.open}"
        raise Violation("the last stable offset is where the oldest open transaction begins", f"{what} at {first_unstable}")


def settled_shards(server: Server, topic: str) -> set[int]:
    """The loaded shards that say what the witness has seen: all that is decided is appended, and there for good."""
    settled = set()
    for name, hosted in server.active():
        log = server.partitions.require(name, hosted.partition).log
        is_settled = log is not None and not hosted.has_open_batch and hosted.committed_offset == log.log_end_offset
        if name == topic and is_settled:
            settled.add(hosted.partition)
    return settled


def check_fetched(world: World, server: Server, request: Any, response: Any) -> None:
    """An OffsetFetch is answered at once: with what is committed, and where that is asked for with what is pending.

    Raises Violation.
    """
    for group in response.groups:
        index = partition_for(group.group_id, world.plan.group_shards)
        if group.error_code or index not in settled_shards(server, CONSUMER_OFFSETS_TOPIC):
            continue
        seen = world.witness.offsets_of(index)
        pending = seen.pending_keys() if request.require_stable else frozenset()
        for topic in group.topics:
            for each in topic.partitions:
                key = OffsetCommitKey(group.group_id, topic.name, each.partition_index)
                known = seen.committed.get(key)
                expected = (ErrorCode.NONE, -1 if known is None else known[1].offset)
                if key in pending:
                    expected = (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
                if (each.error_code, each.committed_offset) != expected:
                    found = f"{key} is fetched as {each.error_code}, {each.committed_offset}, and is {expected}"
                    raise Violation("offsets are fetched as the fates of their transactions say", found)


class _ReadOnlyLog:
    """What a load decides on in the end, that a transaction without partitions is complete, is not written again."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, producer: tuple[int, int] | None = None) -> int:
        """Not at all."""
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{len(records)} records of {producer} at {now_ms}")


class _View(Loop):
    """A coordinator's logs for one who only reads. Part of ``coordinator.runtime.ports``."""

    def __init__(self, server: Server, topic: str) -> None:
        super().__init__()
        self._server = server
        self._topic = topic
        self.partition_count = len(server.partitions.of_topic(topic))

    def open(self, partition: int) -> _ReadOnlyLog:
        """To be read."""
        return _ReadOnlyLog(PartitionLog(self._server.partitions.require(self._topic, partition), 0))

    def on_high_watermark(self, partition: int, callback: Callable[[], None] | None) -> None:
        """Nothing moves while the view is read."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """In the view's own loop."""
        self.soon.append(callback)


class _NoMarkers:
    """A replayed shard ends nothing."""

    def write_marker(self, topic: str, partition: int, marker: EndTxnMarker) -> None:
        """Later, which never comes."""
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{topic}-{partition}: {marker}")


def _make_transaction_shard(_partition: int, context: ShardContext) -> TransactionShard:
    return TransactionShard(context, TransactionConfig(), new_producer_id=lambda: -1, marker_writer=_NoMarkers(), reports=REPORTS)


_KINDS: dict[str, tuple[Any, Any]] = {
    TRANSACTION_STATE_TOPIC: (_make_transaction_shard, decode_transaction_record),
    CONSUMER_OFFSETS_TOPIC: (make_group_shard, decode_group_record),
}


def check_replayed(world: World, server: Server, topic: str, hosted: HostedShard[Any]) -> None:
    """Compare a shard with what its log says, unless records wait to be appended. Raises Violation."""
    partition = server.partitions.require(topic, hosted.partition)
    if hosted.has_open_batch or partition.log is None:
        return
    where = f"{topic}-{hosted.partition}"
    fresh = replay(_View(server, topic), hosted.partition, *_KINDS[topic], KafkaError)
    if topic == TRANSACTION_STATE_TOPIC:
        compare(where, transactions_of(hosted.shard), transactions_of(fresh))
        return
    compare(where, _offsets_of(hosted.shard), _offsets_of(fresh))
    compare(f"{where}, pending", _pending_of(hosted.shard), _pending_of(fresh))
    seen = world.witness.offsets_of(hosted.partition)
    compare(f"{where}, as appended", _offsets_of(hosted.shard), {key: value for key, (_, value) in seen.committed.items()})
    pending = dict.fromkeys(seen.pending_keys())
    compare(f"{where}, pending as appended", dict.fromkeys(hosted.shard.offsets.pending._producers), pending)


def transactions_of(shard: TransactionShard) -> dict[str, Any]:
    """All that is written of each transactional id; its last epoch is not."""
    return {key: value._replace(last_producer_epoch=-1) for key, value in shard.transactions.by_id.items()}


def _offsets_of(shard: GroupShard) -> dict[Any, Any]:
    return {
        (group_id, topic, index): value
        for group_id, topics in shard.offsets.by_group.items()
        for topic, partitions in topics.items()
        for index, value in partitions.items()
    }


def _pending_of(shard: GroupShard) -> dict[Any, Any]:
    pending = shard.offsets.pending
    by_producer = {producer_id: dict(of.items()) for producer_id, of in pending._by_producer.items()}
    return {**by_producer, "producers": dict(pending._producers.items())}
