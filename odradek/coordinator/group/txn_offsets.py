"""Offsets committed in transactions: TxnOffsetCommit, what is pending until the transaction ends, and its end.

Of a partition's pending offset and a later commit the later one stays, in whatever order their transactions end:

    TxnOffsetCommit 5 | OffsetCommit 7 | marker: commit          7
    A: 5 | B: 6 | B: commit | A: commit                          6

A tombstone takes pending offsets back with the committed one. Which transaction an offset belongs to is told by the producer id
of its batch; a producer has one open transaction at most.

Who may commit is decided as for OffsetCommit, but for what a transaction makes sure of itself: a producer that names no member
may commit for any group, and a rebalance under way keeps no member from it.

Source: ``OffsetMetadataManager`` (``commitTransactionalOffset``, ``replay``, ``replayEndTransactionMarker``) and
``ClassicGroup.validateOffsetCommit`` of Apache Kafka; KIP-447.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from odradek.coordinator.group.classic.states import GroupState
from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.coordinator.runtime.timeline import SnapshotRegistry, TimelineDict
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.coordinator.group.classic.group import ClassicGroup
    from odradek.coordinator.group.offsets import CommittedOffsets
    from odradek.coordinator.runtime.marker import EndTxnMarker

_M: Final = messages(ApiKey.TXN_OFFSET_COMMIT)
_Response: Final = _M.TxnOffsetCommitResponse
_Topic: Final = _M.TxnOffsetCommitResponseTopic
_Partition: Final = _M.TxnOffsetCommitResponsePartition

_new_tuple: Final = tuple.__new__
# A compiled module looks up what is not final by name.
_Key: Final = OffsetCommitKey
_Value: Final = OffsetCommitValue
_Record: Final = CoordinatorRecord
_NO_TIME: Final = -1

# Where a pending offset lies in the log, and the offset; None once a later commit is there.
_Pending: TypeAlias = "tuple[int, OffsetCommitValue | None]"


class PendingOffsets:
    """The offsets of one shard that are pending in open transactions. Loop thread only."""

    __slots__ = ("_by_producer", "_producers", "_snapshots")

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self._snapshots = snapshots
        self._by_producer: TimelineDict[int, TimelineDict[OffsetCommitKey, _Pending]] = TimelineDict(snapshots)
        self._producers: TimelineDict[OffsetCommitKey, frozenset[int]] = TimelineDict(snapshots)

    def __len__(self) -> int:
        """How many offsets have a pending one."""
        return len(self._producers)

    def __contains__(self, key: OffsetCommitKey) -> bool:
        """Whether an open transaction is about to commit this offset."""
        return key in self._producers

    def of_group(self, group_id: str) -> list[OffsetCommitKey]:
        """A group's offsets that are pending."""
        return [key for key in self._producers if key.group == group_id]

    def of_topic(self, topic: str) -> list[OffsetCommitKey]:
        """The same for a topic, of all groups."""
        return [key for key in self._producers if key.topic == topic]

    def replay(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue, at_offset: int) -> None:
        """A record of a transaction, at ``at_offset``."""
        pending = self._by_producer.get(producer_id)
        if pending is None:
            pending = self._by_producer[producer_id] = TimelineDict(self._snapshots)
        pending[key] = at_offset, value
        producers = self._producers.get(key) or frozenset()
        if producer_id not in producers:
            self._producers[key] = producers | {producer_id}

    def supersede(self, key: OffsetCommitKey, at_offset: int) -> None:
        """The offset was committed at ``at_offset``: what was pending before does not count any more, and is pending still."""
        for producer_id in self._producers.get(key) or ():
            pending = self._by_producer[producer_id]
            if pending[key][0] < at_offset:
                pending[key] = pending[key][0], None

    def forget(self, key: OffsetCommitKey) -> None:
        """The offset is taken back, and what is pending with it."""
        for producer_id in self._producers.pop(key) or ():
            pending = self._by_producer[producer_id]
            del pending[key]
            if not pending:
                del self._by_producer[producer_id]

    def end(self, producer_id: int) -> list[tuple[OffsetCommitKey, int, OffsetCommitValue]]:
        """A producer's transaction has ended: nothing of it is pending. (key, offset in the log, value) of what still counts."""
        pending = self._by_producer.pop(producer_id)
        if pending is None:
            return []
        for key in pending:
            left = (self._producers.get(key) or frozenset()) - {producer_id}
            if left:
                self._producers[key] = left
            else:
                del self._producers[key]
        return [(key, at_offset, value) for key, (at_offset, value) in pending.items() if value is not None]


def end_transaction(marker: EndTxnMarker) -> CoordinatorResult[None]:
    """Write the end of a transaction; to be replayed it is enough."""
    return CoordinatorResult((), None, marker=marker)


def commit_offsets_in_transaction(offsets: CommittedOffsets, request: Any) -> CoordinatorResult[Any]:
    """Decide on a TxnOffsetCommit of a transaction that has this group's partition, whose topics and partitions exist.

    The response is None where all offsets are taken. Metadata beyond ``offset.metadata.max.bytes`` is answered
    OFFSET_METADATA_TOO_LARGE, partition by partition. Raises KafkaError for what concerns the whole request.
    """
    _check_committer(offsets, request)
    now_ms = offsets.clock.now_ms()
    limit = offsets.config.offset_metadata_max_bytes
    records = []
    group_id = request.group_id
    is_any_too_large = False
    for topic in request.topics:
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            if len(metadata) > limit:
                is_any_too_large = True
                continue
            # The quick way to make named tuples.
            key = _new_tuple(_Key, (group_id, topic.name, partition.partition_index))
            value = _new_tuple(
                _Value, (partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, _NO_TIME, None)
            )
            records.append(_new_tuple(_Record, (key, value)))
    offsets.counters.commits += len(records)
    producer = (request.producer_id, request.producer_epoch) if records else None
    return CoordinatorResult(records, _too_large(request.topics, limit) if is_any_too_large else None, producer=producer)


def _too_large(topics: Any, limit: int) -> Any:
    """The response where some metadata has more than ``limit`` characters."""
    return _Response(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _Partition(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE
                        if len(each.committed_metadata or "") > limit
                        else ErrorCode.NONE,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def _check_committer(offsets: CommittedOffsets, request: Any) -> None:
    """Raise what keeps the request from committing, or note that its member lives."""
    group = offsets.groups.find(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, "there is no such group")
        return
    names_member = request.generation_id >= 0 or request.member_id or request.group_instance_id is not None
    if not names_member or (request.generation_id < 0 and group.state is GroupState.EMPTY):
        return
    error = _validate(group, request)
    if error is not ErrorCode.NONE:
        raise KafkaError(error, f"a transactional commit to group {group.group_id} in state {group.state}")
    if group.state is not GroupState.EMPTY:
        offsets.groups.sessions.touch(group, group.members[request.member_id])


def _validate(group: ClassicGroup, request: Any) -> ErrorCode:
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    return ErrorCode.NONE if request.generation_id == group.generation else ErrorCode.ILLEGAL_GENERATION
