"""Offsets committed in transactions: TxnOffsetCommit, and the transaction's end. See also ``pending_offsets``.

A transactional commit is validated like an OffsetCommit, with two exceptions: a producer that names no member may commit for any
group, and members may commit during a rebalance.

Source: ``OffsetMetadataManager.commitTransactionalOffset`` of Apache Kafka; KIP-447.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.runtime.record import CoordinatorRecord
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from odradek.coordinator.group.offsets import CommittedOffsets
    from odradek.coordinator.runtime.record import EndTxnMarker

_Response: Final = TxnOffsetCommitResponse
_Topic: Final = TxnOffsetCommitResponseTopic
_Partition: Final = TxnOffsetCommitResponsePartition

_new_tuple: Final = tuple.__new__
_NO_TIME: Final = -1
_ANY_VERSION: Final = 9


def end_transaction(marker: EndTxnMarker) -> CoordinatorResult[None]:
    """Write the marker that ends a transaction. Its replay commits or drops the pending offsets."""
    return CoordinatorResult((), None, marker=marker)


def commit_offsets_in_transaction(
    offsets: CommittedOffsets, request: TxnOffsetCommitRequest, topic_id: Callable[[str], UUID | None] | None = None
) -> CoordinatorResult[TxnOffsetCommitResponse | None]:
    """Decide on a TxnOffsetCommit. Topics and partitions exist; the transaction has the group's partition.

    The response is None if all offsets are accepted. Metadata beyond ``offset.metadata.max.bytes`` is answered
    OFFSET_METADATA_TOO_LARGE, partition by partition. ``topic_id`` finds the id of a topic. Raises KafkaError for errors of the
    whole request.
    """
    _check_committer(offsets, request, topic_id)
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
            # The fastest way to make named tuples.
            key = _new_tuple(OffsetCommitKey, (group_id, topic.name, partition.partition_index))
            value = _new_tuple(
                OffsetCommitValue,
                (partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, _NO_TIME, None),
            )
            records.append(_new_tuple(CoordinatorRecord, (key, value)))
    offsets.counters.commits += len(records)
    producer = (request.producer_id, request.producer_epoch) if records else None
    return CoordinatorResult(records, _too_large(request.topics, limit) if is_any_too_large else None, producer=producer)


def _too_large(topics: Sequence[TxnOffsetCommitRequestTopic], limit: int) -> TxnOffsetCommitResponse:
    """Return the response if some metadata has more than ``limit`` characters."""
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


def _check_committer(
    offsets: CommittedOffsets, request: TxnOffsetCommitRequest, topic_id: Callable[[str], UUID | None] | None
) -> None:
    """Raise the error that forbids the request to commit, or note that its member is alive."""
    group = offsets.groups.find(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, "no such group")
        return
    error = group.validate_offset_commit(
        request.member_id, request.group_instance_id, request.generation_id, is_transactional=True, version=_ANY_VERSION
    )
    if error is not ErrorCode.NONE:
        named = (
            (None if topic_id is None else topic_id(topic.name), each.partition_index)
            for topic in request.topics
            for each in topic.partitions
        )
        is_stale = error is ErrorCode.STALE_MEMBER_EPOCH
        if not is_stale or not group.permits_late_commit(request.member_id, request.generation_id, named):
            # TxnOffsetCommit has no code for member epochs.
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION if is_stale else error, f"{group} refused a transactional commit")
    offsets.groups.note_alive(group, request.member_id)
