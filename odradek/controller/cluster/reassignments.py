"""Moves of replicas and elections of leaders, as clients ask for them, and the elections that the controller holds periodically.

AlterPartitionReassignments moves replicas to other brokers and cancels moves, ListPartitionReassignments lists the moves under
way (KIP-455, KIP-860). A moving partition has its old and new replicas until the new ones are in sync. Then ``PartitionChange``
completes the move; at once if there is nothing to wait for. ElectLeaders holds elections (KIP-460).
"""

from collections.abc import Iterable, Sequence

from odradek.controller.cluster.partition_changes import Election, MovingReplicas, change_of
from odradek.controller.metadata.cluster_view import NO_LEADER, ClusterView
from odradek.controller.metadata.placement import ensure_assignment
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.message_types.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
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


# The election types of a request.
_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
# The most elections that the controller holds at once, as in Kafka.
MAX_ELECTIONS = 1_000


def elect_leaders(view: ClusterView, request: ElectLeadersRequest) -> tuple[ElectLeadersResponse, list[MetadataRecord]]:
    """Return the response and the records.

    Without a list of partitions all are meant, and those that need no election are left out of the response.
    """
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        return _unknown_election(request), []
    records: list[MetadataRecord] = []
    results = []
    if request.topic_partitions is None:
        for topic in view.image.topics.values():
            needing = [index for index, partition in topic.partitions.items() if not _has_leader(partition, election)]
            told = [_elect(view, topic.name, index, election, records) for index in needing]
            results.append(ReplicaElectionResult(topic=topic.name, partition_result=told))
    else:
        for asked in request.topic_partitions:
            told = [_elect(view, asked.topic, index, election, records) for index in asked.partitions]
            results.append(ReplicaElectionResult(topic=asked.topic, partition_result=told))
    return ElectLeadersResponse(replica_election_results=results), records


def balance(view: ClusterView) -> list[MetadataRecord]:
    """Return the records that give partitions back to their preferred leaders, at most MAX_ELECTIONS."""
    records: list[MetadataRecord] = []
    for topic, partition in view.image.partitions():
        if len(records) >= MAX_ELECTIONS:
            break
        if partition.leader != partition.replicas[0]:
            records += _records_of(view, topic, partition, Election.PREFERRED)
    return records


def elect_unclean(view: ClusterView) -> list[MetadataRecord]:
    """Return the records that give leaderless partitions a leader that may lack records, at most MAX_ELECTIONS.

    Only where unclean elections are allowed, which may be so only since the partition lost its leader.
    """
    records: list[MetadataRecord] = []
    for topic, partition in view.leaderless():
        if len(records) >= MAX_ELECTIONS:
            break
        if view.allows_unclean(topic):
            records += _records_of(view, topic, partition, Election.UNCLEAN)
    return records


def _elect(view: ClusterView, topic_name: str, index: int, election: Election, records: list[MetadataRecord]) -> PartitionResult:
    try:
        topic, partition = view.partition(topic_name, index)
    except KafkaError as error:
        return PartitionResult(index, error.code, error.reason)
    if _has_leader(partition, election):
        return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "The partition already has its leader.")
    elected = _records_of(view, topic, partition, election)
    records += elected
    if elected:
        return PartitionResult(index)
    if election is Election.PREFERRED:
        return PartitionResult(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica can lead.")


def _has_leader(partition: PartitionRecord, election: Election) -> bool:
    """Return whether a partition already has the election's leader: any one, or the preferred one."""
    leader = partition.leader
    return leader != NO_LEADER if election is Election.UNCLEAN else leader == partition.replicas[0]


def _records_of(view: ClusterView, topic: Topic, partition: PartitionRecord, election: Election) -> list[MetadataRecord]:
    change = change_of(view, topic, partition)
    change.election = election
    record = change.record()
    return [] if record is None else [record]


def _unknown_election(request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = f"There is no election of type {request.election_type}."
    results = [
        ReplicaElectionResult(
            topic=asked.topic,
            partition_result=[PartitionResult(index, ErrorCode.INVALID_REQUEST, message) for index in asked.partitions],
        )
        for asked in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=results)
