"""Records the directories that brokers report for their replicas (AssignReplicasToDirs, KIP-858)."""

from odradek.controller.cluster.broker_changes import change_of, offline_replicas
from odradek.controller.metadata.cluster_view import MIGRATING, ClusterView, has_online
from odradek.controller.metadata.topic import Topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord


def assign_replicas(
    view: ClusterView, request: AssignReplicasToDirsRequest
) -> tuple[AssignReplicasToDirsResponse, list[MetadataRecord]]:
    """Return the response, with a result per partition, and the records. KafkaError: STALE_BROKER_EPOCH.

    A replica in a directory that has failed meanwhile is offline, and another replica becomes leader.
    """
    broker = view.registration(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    offline: dict[tuple[str, int], tuple[Topic, PartitionRecord]] = {}
    directories = []
    for asked in request.directories:
        directory = asked.id or MIGRATING
        topics = []
        for named in asked.topics:
            topic = None if named.topic_id is None else view.image.topics_by_id.get(named.topic_id)
            answers = []
            for index in (each.partition_index for each in named.partitions):
                partition = None if topic is None else topic.partitions.get(index)
                error = _error(topic, partition, broker.broker_id)
                answers.append(PartitionData(index, error))
                if error or topic is None or partition is None:
                    continue
                change = change_of(view, topic, partition)
                change.directories[broker.broker_id] = directory
                record = change.record()
                if record is not None:
                    records.append(record)
                if not has_online(broker, directory):
                    offline[topic.name, index] = (topic, partition)
            topics.append(TopicData(topic_id=named.topic_id, partitions=answers))
        directories.append(DirectoryData(id=asked.id, topics=topics))
    records += offline_replicas(view, broker.broker_id, offline.values())
    return AssignReplicasToDirsResponse(directories=directories), records


def _error(topic: Topic | None, partition: PartitionRecord | None, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
