"""Elections that are asked for (ElectLeaders, KIP-460), and those that the controller holds by itself from time to time."""

from odradek.controller.cluster.broker_changes import change_of
from odradek.controller.cluster.partition_change import Election
from odradek.controller.metadata.cluster_view import NO_LEADER, ClusterView
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord

# The election types of a request.
_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
# Elections that the controller holds at once, as Kafka's.
MAX_ELECTIONS = 1_000


def elect_leaders(view: ClusterView, request: ElectLeadersRequest) -> tuple[ElectLeadersResponse, list[MetadataRecord]]:
    """The answer, and the records. Without a list all partitions are meant, and those that need no election are not told."""
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
    """Partitions go back to their preferred leaders, MAX_ELECTIONS of them at most."""
    records: list[MetadataRecord] = []
    for topic, partition in view.image.partitions():
        if len(records) >= MAX_ELECTIONS:
            break
        if partition.leader != partition.replicas[0]:
            records += _records_of(view, topic, partition, Election.PREFERRED)
    return records


def elect_unclean(view: ClusterView) -> list[MetadataRecord]:
    """Partitions without a leader get one that lacks records where that is allowed: it may have been allowed since."""
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
        return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "The partition has its leader.")
    elected = _records_of(view, topic, partition, election)
    records += elected
    if elected:
        return PartitionResult(index)
    if election is Election.PREFERRED:
        return PartitionResult(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica can lead.")


def _has_leader(partition: PartitionRecord, election: Election) -> bool:
    """Return whether a partition has the leader that the election is to give it: any, or the preferred one."""
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
