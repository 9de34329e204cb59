"""In-sync replicas that leaders propose (AlterPartition, KIP-497, KIP-841, KIP-903).

Each partition is answered separately. The response has the partition's new state, so the leader need not wait for the metadata.
"""

from collections.abc import Sequence

from odradek.controller.cluster.partition_changes import RECOVERED, RECOVERING, Election, change_of
from odradek.controller.metadata.cluster_view import ClusterView
from odradek.controller.metadata.kept_records import merge
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    RequestPartitionData,
    TopicData,
)
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord
from odradek.protocol.metadata_records.base import NO_LEADER_CHANGE

_ANY_EPOCH = -1


def alter_partitions(view: ClusterView, request: AlterPartitionRequest) -> tuple[AlterPartitionResponse, list[MetadataRecord]]:
    """Return the response and the records. KafkaError: STALE_BROKER_EPOCH."""
    view.registration(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    topics = []
    for asked in request.topics:
        topic = None if asked.topic_id is None else view.image.topics_by_id.get(asked.topic_id)
        answers = [
            PartitionData(each.partition_index, ErrorCode.UNKNOWN_TOPIC_ID)
            if topic is None
            else _alter(view, topic, request.broker_id, each, records)
            for each in asked.partitions
        ]
        topics.append(TopicData(topic_id=asked.topic_id, partitions=answers))
    return AlterPartitionResponse(topics=topics), records


def _alter(
    view: ClusterView, topic: Topic, leader_id: int, asked: RequestPartitionData, records: list[MetadataRecord]
) -> PartitionData:
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        return PartitionData(asked.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = _epoch_error(partition, leader_id, asked) or _isr_error(view, partition, asked)
    if error:
        return PartitionData(asked.partition_index, error)
    change = change_of(view, topic, partition)
    if view.allows_unclean(topic):
        change.election = Election.UNCLEAN
    change.isr = [each.broker_id for each in asked.new_isr_with_epochs]
    change.recovery_state = asked.leader_recovery_state
    record = change.record()
    if record is not None:
        records.append(record)
        partition = merge(partition, record)
        # The proposal has completed a reassignment that gives the leadership to another broker.
        if record.leader not in (NO_LEADER_CHANGE, leader_id):
            return PartitionData(asked.partition_index, ErrorCode.NEW_LEADER_ELECTED)
    return PartitionData(
        partition_index=asked.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _epoch_error(partition: PartitionRecord, leader_id: int, asked: RequestPartitionData) -> ErrorCode | None:
    """Return the error for wrong epochs, or None. A leader ahead of this controller must look for a newer one."""
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_UPDATE_VERSION if asked.partition_epoch < partition.partition_epoch else None


def _isr_error(view: ClusterView, partition: PartitionRecord, asked: RequestPartitionData) -> ErrorCode | None:
    isr = [each.broker_id for each in asked.new_isr_with_epochs]
    is_recovering = asked.leader_recovery_state == RECOVERING
    if (
        not isr
        or len(set(isr)) != len(isr)
        or not set(isr) <= set(partition.replicas)
        or partition.leader not in isr
        # A leader that lacks records must be alone in sync until it reports its recovery.
        or (is_recovering and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED))
    ):
        return ErrorCode.INVALID_REQUEST
    return None if _are_eligible(view, asked.new_isr_with_epochs) else ErrorCode.INELIGIBLE_REPLICA


def _are_eligible(view: ClusterView, replicas: Sequence[BrokerState]) -> bool:
    """Return whether all are active, and are the incarnations that the leader has tracked."""
    return all(
        view.is_active(each.broker_id) and each.broker_epoch in (_ANY_EPOCH, view.brokers[each.broker_id].broker_epoch)
        for each in replicas
    )
