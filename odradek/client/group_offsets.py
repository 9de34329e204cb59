"""Requests and answers about a group's committed offsets, without I/O."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.client.known_cluster import Partition, by_topic
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from odradek.protocol.message_types.offset_commit import OffsetCommitResponse
    from odradek.protocol.message_types.offset_fetch import OffsetFetchResponseGroup


def commit_request(
    group_id: str, offsets: Mapping[Partition, int], *, generation_id: int = -1, member_id: str = ""
) -> OffsetCommitRequest:
    """Return the request of a member; by default that of a consumer outside the group."""
    rows = [
        (topic, OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=""))
        for (topic, index), offset in offsets.items()
    ]
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions) for topic, partitions in by_topic(rows).items()],
    )


def refused_commits(response: "OffsetCommitResponse") -> dict[Partition, int]:
    """Return the error codes of the refused partitions."""
    return {
        (str(topic.name), int(one.partition_index)): one.error_code
        for topic in response.topics
        for one in topic.partitions
        if one.error_code
    }


def committed_offsets(group: "OffsetFetchResponseGroup") -> dict[Partition, int]:
    """Return the offset of each partition that has one, and that the client may see."""
    return {
        (str(topic.name), int(one.partition_index)): int(one.committed_offset)
        for topic in group.topics
        for one in topic.partitions
        if not one.error_code and one.committed_offset >= 0
    }
