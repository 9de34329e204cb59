"""OffsetCommit: the check of the committer, and the records of the commit.

    group does not exist      generation < 0: it becomes a simple group, a place for offsets; else GROUP_ID_NOT_FOUND, which was
                              ILLEGAL_GENERATION before version 9
    Empty, generation < 0     any client may commit: an administrator, or a consumer that assigns itself its partitions
    no member named           UNKNOWN_MEMBER_ID if the group has members
    otherwise                 a member of this generation: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION
    CompletingRebalance       REBALANCE_IN_PROGRESS even so: the member has yet to learn its assignment

The table is for classic groups. In a consumer group, a member commits with its epoch. With an older epoch, it may commit for
partitions that it has had since then. Otherwise the answer is STALE_MEMBER_EPOCH.

Source: ``OffsetMetadataManager.commitOffset`` of Apache Kafka. HOT.

Offsets committed in transactions: TxnOffsetCommit, and the transaction's end. See also ``PendingOffsets`` in ``offsets``.

A transactional commit is validated like an OffsetCommit, with two exceptions: a producer that names no member may commit for
any group, and members may commit during a rebalance. Before version 6, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH are
ILLEGAL_GENERATION.

Source: ``OffsetMetadataManager.commitTransactionalOffset`` of Apache Kafka; KIP-447, KIP-1319.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult
from odradek.protocol.accepted_commit import AcceptedCommit
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.message_types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from odradek.coordinator.group.offsets import CommittedOffsets
    from odradek.coordinator.runtime.result import EndTxnMarker

_Topic: Final = OffsetCommitResponseTopic
_Partition: Final = OffsetCommitResponsePartition

# A topic's id, the commits of its partitions, and its name: the fields of an OffsetCommitRequestTopic.
CommitTopic: TypeAlias = tuple[UUID | None, Sequence[OffsetCommitRequestPartition], str]
# The same of a TxnOffsetCommit.
TxnCommitTopic: TypeAlias = tuple[UUID | None, Sequence[TxnOffsetCommitRequestPartition], str]
# Name, id, and the index and error code of each partition.
_AnsweredTopic: TypeAlias = tuple[str, UUID | None, tuple[tuple[int, ErrorCode], ...]]
# Each partition of each commit makes named tuples. Bypassing their constructors halves the time.
_new: Final = tuple.__new__

# The first version that can be answered GROUP_ID_NOT_FOUND.
_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND: Final = 9
_NO_RETENTION_TIME: Final = -1
_NO_EXPIRE_TIMESTAMP: Final = -1
_LATEST_MS: Final = (1 << 63) - 1
# The most topics and partitions in a cached answer. All cached answers take a few MiB.
_MOST_SHARED: Final = 64


def commit_offsets(
    offsets: CommittedOffsets, request: OffsetCommitRequest, topics: Sequence[CommitTopic], version: int
) -> CoordinatorResult[OffsetCommitResponse]:
    """Decide on an OffsetCommit for ``topics``: the request's topics with partitions known to exist.

    Metadata beyond ``offset.metadata.max.bytes`` is answered OFFSET_METADATA_TOO_LARGE, partition by partition. Raises KafkaError
    for errors of the whole request. A commit restarts its member's session.
    """
    is_new = _check_committer(offsets, request, topics, version)
    group_id = request.group_id
    now_ms = offsets.clock.now_ms()
    retention_ms = request.retention_time_ms
    expire_ms = _NO_EXPIRE_TIMESTAMP if retention_ms == _NO_RETENTION_TIME else min(now_ms + retention_ms, _LATEST_MS)
    limit = offsets.config.offset_metadata_max_bytes
    records = []
    answered = []
    is_refusing = False
    for topic_id, asked, name in topics:
        partitions = []
        for index, committed_offset, leader_epoch, committed_metadata in asked:
            metadata = committed_metadata or ""
            if len(metadata) > limit:
                partitions.append((index, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                is_refusing = True
                continue
            partitions.append((index, ErrorCode.NONE))
            value = _new(OffsetCommitValue, (committed_offset, leader_epoch, metadata, now_ms, expire_ms, topic_id))
            records.append(_new(CoordinatorRecord, (_new(OffsetCommitKey, (group_id, name, index)), value)))
        answered.append((name, topic_id, tuple(partitions)))
    offsets.counters.commits += len(records)
    is_shared = not is_refusing and len(records) + len(answered) <= _MOST_SHARED
    response = _accept(tuple(answered)) if is_shared else _answer(answered)
    return CoordinatorResult(records, response, partial(offsets.groups.forget_unstored, group_id) if is_new else None)


def _answer(topics: Iterable[_AnsweredTopic]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            _Topic(
                name=name,
                topic_id=topic_id,
                partitions=[_Partition(partition_index=index, error_code=error_code) for index, error_code in partitions],
            )
            for name, topic_id, partitions in topics
        ]
    )


# Groups commit the same partitions again and again. Only existing partitions reach this cache, so one topic has few forms.
@lru_cache(maxsize=1024)
def _accept(topics: tuple[_AnsweredTopic, ...]) -> OffsetCommitResponse:
    """Return the answer to a fully accepted commit. It is encoded only once and never modified."""
    return AcceptedCommit(topics=_answer(topics).topics)


def _check_committer(
    offsets: CommittedOffsets, request: OffsetCommitRequest, topics: Iterable[CommitTopic], version: int
) -> bool:
    """Raise the error that forbids the request to commit, or note that its member is alive. Return whether the group is new."""
    groups = offsets.groups
    generation = request.generation_id_or_member_epoch
    group = groups.find(request.group_id)
    if group is None:
        if generation >= 0:
            known = version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION, "no such group")
        return True
    error = group.validate_offset_commit(
        request.member_id, request.group_instance_id, generation, is_transactional=False, version=version
    )
    if error is not ErrorCode.NONE:
        named = ((topic_id, each.partition_index) for topic_id, asked, _ in topics for each in asked)
        if error not in _WRONG_EPOCH or not group.permits_late_commit(request.member_id, generation, named):
            raise KafkaError(error, f"{group} refused a commit")
    groups.note_alive(group, request.member_id)
    return False


_Response: Final = TxnOffsetCommitResponse
_TxnTopic: Final = TxnOffsetCommitResponseTopic
_TxnPartition: Final = TxnOffsetCommitResponsePartition

_new_tuple: Final = tuple.__new__
# A wrong epoch, for members of the two protocols. Such a commit may be late (KIP-1251).
_WRONG_EPOCH: Final = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)
_NO_TIME: Final = -1
_ANY_VERSION: Final = 9
# The first version of TxnOffsetCommit that is told of missing groups and stale member epochs.
_FIRST_VERSION_WITH_GROUP_ERRORS: Final = 6


def end_transaction(marker: EndTxnMarker) -> CoordinatorResult[None]:
    """Write the marker that ends a transaction. Its replay commits or drops the pending offsets."""
    return CoordinatorResult((), None, marker=marker)


def commit_offsets_in_transaction(
    offsets: CommittedOffsets, request: TxnOffsetCommitRequest, topics: Sequence[TxnCommitTopic], version: int
) -> CoordinatorResult[TxnOffsetCommitResponse | None]:
    """Decide on a TxnOffsetCommit for ``topics``, whose partitions exist. The transaction has the group's partition.

    The response is None if all offsets are accepted. Metadata beyond ``offset.metadata.max.bytes`` is answered
    OFFSET_METADATA_TOO_LARGE, partition by partition. Raises KafkaError for errors of the whole request.
    """
    _check_txn_committer(offsets, request, topics, version)
    now_ms = offsets.clock.now_ms()
    limit = offsets.config.offset_metadata_max_bytes
    records = []
    group_id = request.group_id
    is_any_too_large = False
    for topic_id, asked, name in topics:
        for partition in asked:
            metadata = partition.committed_metadata or ""
            if len(metadata) > limit:
                is_any_too_large = True
                continue
            # The fastest way to make named tuples.
            key = _new_tuple(OffsetCommitKey, (group_id, name, partition.partition_index))
            value = _new_tuple(
                OffsetCommitValue,
                (partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, _NO_TIME, topic_id),
            )
            records.append(_new_tuple(CoordinatorRecord, (key, value)))
    offsets.counters.commits += len(records)
    producer = (request.producer_id, request.producer_epoch) if records else None
    return CoordinatorResult(records, _too_large(topics, limit) if is_any_too_large else None, producer=producer)


def _too_large(topics: Sequence[TxnCommitTopic], limit: int) -> TxnOffsetCommitResponse:
    """Return the response if some metadata has more than ``limit`` characters."""
    return _Response(
        topics=[
            _TxnTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    _TxnPartition(
                        partition_index=each.partition_index,
                        error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE
                        if len(each.committed_metadata or "") > limit
                        else ErrorCode.NONE,
                    )
                    for each in asked
                ],
            )
            for topic_id, asked, name in topics
        ]
    )


def _check_txn_committer(
    offsets: CommittedOffsets, request: TxnOffsetCommitRequest, topics: Iterable[TxnCommitTopic], version: int
) -> None:
    """Raise the error that forbids the request to commit. As in Kafka, it is no sign that its member is alive."""
    is_told = version >= _FIRST_VERSION_WITH_GROUP_ERRORS
    generation = request.generation_id_or_member_epoch
    group = offsets.groups.find(request.group_id)
    if group is None:
        if generation >= 0:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.ILLEGAL_GENERATION, "no such group")
        return
    error = group.validate_offset_commit(
        request.member_id, request.group_instance_id, generation, is_transactional=True, version=_ANY_VERSION
    )
    if error is not ErrorCode.NONE:
        named = ((topic_id, each.partition_index) for topic_id, asked, _ in topics for each in asked)
        if error not in _WRONG_EPOCH or not group.permits_late_commit(request.member_id, generation, named):
            code = ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH and not is_told else error
            raise KafkaError(code, f"{group} refused a transactional commit")
