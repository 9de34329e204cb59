"""Moves replicas to other brokers, cancels moves, and lists the moves under way (KIP-455, KIP-860).

A moving partition has its old and new replicas until the new ones are in sync. Then ``PartitionChange`` completes the move; at
once if there is nothing to wait for.
"""

from collections.abc import Iterable, Sequence

from odradek.controller.cluster.broker_changes import change_of
from odradek.controller.cluster.partition_change import Election, MovingReplicas
from odradek.controller.metadata.cluster_view import ClusterView
from odradek.controller.metadata.placement import ensure_assignment
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.message_types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord


def alter_reassignments(
    view: ClusterView, request: AlterPartitionReassignmentsRequest
) -> tuple[AlterPartitionReassignmentsResponse, list[MetadataRecord]]:
    """Return the response, with a result per partition, and the records."""
    records: list[MetadataRecord] = []
    topics = []
    for asked in request.topics:
        answers = []
        for each in asked.partitions:
            try:
                topic, partition = view.partition(asked.name, each.partition_index)
                if each.replicas is None:
                    record = _cancel(view, topic, partition)
                else:
                    keeps_factor = not request.allow_replication_factor_change
                    record = _reassign(view, topic, partition, each.replicas, keeps_factor=keeps_factor)
            except KafkaError as error:
                answers.append(ReassignablePartitionResponse(each.partition_index, error.code, error.reason or None))
                continue
            answers.append(ReassignablePartitionResponse(each.partition_index))
            if record is not None:
                records.append(record)
        topics.append(ReassignableTopicResponse(name=asked.name, partitions=answers))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=topics
    )
    return response, records


def list_reassignments(view: ClusterView, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Return the moves under way of the requested partitions, or of all."""
    topics = view.image.topics
    if request.topics is None:
        wanted: Iterable[tuple[Topic, Iterable[int]]] = [(topic, topic.partitions) for topic in topics.values()]
    else:
        wanted = [(topics[asked.name], asked.partition_indexes) for asked in request.topics if asked.name in topics]
    listed = [OngoingTopicReassignment(topic.name, _under_way(topic, indexes)) for topic, indexes in wanted]
    return ListPartitionReassignmentsResponse(topics=[each for each in listed if each.partitions])


def _under_way(topic: Topic, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    found = (topic.partitions[index] for index in indexes if index in topic.partitions)
    return [
        OngoingPartitionReassignment(
            partition.partition_id, partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for partition in found
        if MovingReplicas.of(partition).is_moving
    ]


def _reassign(
    view: ClusterView, topic: Topic, partition: PartitionRecord, target: Sequence[int], *, keeps_factor: bool
) -> PartitionChangeRecord | None:
    ensure_assignment(target, view.brokers)
    factor = len(MovingReplicas.of(partition).target)
    if keeps_factor and len(target) != factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor would change from {factor} to {len(target)}, which the request does not allow.",
        )
    moving = MovingReplicas.between(partition.replicas, target)
    change = change_of(view, topic, partition)
    change.replicas = moving.replicas
    # A move under way continues to the new target. Its added or removed replicas stay noted if the new move has none.
    change.removing = moving.removing or change.removing
    change.adding = moving.adding or change.adding
    return change.record()


def _cancel(view: ClusterView, topic: Topic, partition: PartitionRecord) -> PartitionChangeRecord | None:
    moving = MovingReplicas.of(partition)
    if not moving.is_moving:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    original = moving.original
    isr = [replica for replica in partition.isr if replica not in moving.adding]
    allows_unclean = view.allows_unclean(topic)
    if not original:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The reassignment added all replicas, so it cannot be cancelled.")
    if not isr:
        if not allows_unclean:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "None of the old replicas is in sync, and an out-of-sync replica cannot lead.",
            )
        isr = original[:1]
    change = change_of(view, topic, partition)
    if allows_unclean:
        change.election = Election.UNCLEAN
    change.isr = isr
    change.replicas = original
    change.removing = change.adding = ()
    return change.record()
