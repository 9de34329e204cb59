"""Changes a group's offsets: commits them, alters a share group's start offsets, or deletes them.

Each function returns the refusals, by topic or partition, and raises Refused if the whole group is refused.
"""

from typing import TYPE_CHECKING

from odradek.cli.cluster import Cluster, Refused, check
from odradek.cli.described_group import SHARE, DescribedGroup
from odradek.client.admin_apis import ALTER_SHARE_GROUP_OFFSETS, DELETE_SHARE_GROUP_OFFSETS, OFFSET_DELETE
from odradek.client.apis import OFFSET_COMMIT
from odradek.client.group_offsets import commit_request, refused_commits
from odradek.client.known_cluster import by_topic, name_of
from odradek.protocol.message_types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from odradek.protocol.message_types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from odradek.protocol.message_types.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

if TYPE_CHECKING:
    from odradek.client.known_cluster import Partition


def commit_offsets(cluster: Cluster, group: str, offsets: "dict[Partition, int]") -> list[Refused]:
    """Commit like a consumer outside the group."""
    connection, _ = cluster.coordinator(group)
    answer = connection.call(OFFSET_COMMIT, commit_request(group, offsets))
    return [Refused(name_of(partition), code) for partition, code in refused_commits(answer).items()]


def alter_start_offsets(cluster: Cluster, group: str, offsets: "dict[Partition, int]") -> list[Refused]:
    """Set the start offsets of a share group."""
    rows = [
        (topic, AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset))
        for (topic, index), offset in offsets.items()
    ]
    connection, _ = cluster.coordinator(group)
    asked = [AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=one) for topic, one in by_topic(rows).items()]
    answer = connection.call(ALTER_SHARE_GROUP_OFFSETS, AlterShareGroupOffsetsRequest(group_id=group, topics=asked))
    check(group, answer.error_code, answer.error_message)
    return [
        Refused(f"{topic.topic_name}-{partition.partition_index}", partition.error_code, partition.error_message)
        for topic in answer.responses
        for partition in topic.partitions
        if partition.error_code
    ]


def delete_offsets(cluster: Cluster, group: DescribedGroup, names: list[str]) -> list[Refused]:
    """Delete the offsets of topics."""
    connection, _ = cluster.coordinator(group.group)
    if group.group_type == SHARE:
        asked = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        answer = connection.call(DELETE_SHARE_GROUP_OFFSETS, DeleteShareGroupOffsetsRequest(group_id=group.group, topics=asked))
        check(group.group, answer.error_code, answer.error_message)
        return [Refused(each.topic_name, each.error_code, each.error_message) for each in answer.responses if each.error_code]
    indexes: dict[str, list[OffsetDeleteRequestPartition]] = {name: [] for name in names}
    for topic, index in group.offsets:
        if topic in indexes:
            indexes[topic].append(OffsetDeleteRequestPartition(partition_index=index))
    rows = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name, partitions in indexes.items() if partitions]
    deleted = connection.call(OFFSET_DELETE, OffsetDeleteRequest(group_id=group.group, topics=rows))
    check(group.group, deleted.error_code)
    found = {topic.name: max(partition.error_code for partition in topic.partitions) for topic in deleted.topics}
    return [Refused(name, code) for name, code in found.items() if code]
