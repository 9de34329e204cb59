"""Requests of members and administrators, as canonical messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


COMMIT = messages(ApiKey.OFFSET_COMMIT)
FETCH = messages(ApiKey.OFFSET_FETCH)
DELETE = messages(ApiKey.DELETE_GROUPS)
DESCRIBE = messages(ApiKey.DESCRIBE_GROUPS)
LIST = messages(ApiKey.LIST_GROUPS)


def commit(consumer: Any, group_id: str, topic_id: UUID, offsets: Mapping[int, int], *, topic: str) -> Any:
    """An OffsetCommit of a member, or of a client that is no member."""
    partition = COMMIT.OffsetCommitRequestPartition
    return COMMIT.OffsetCommitRequest(
        group_id=group_id,
        member_id="" if consumer is None else consumer.member_id,
        generation_id_or_member_epoch=-1 if consumer is None else consumer.generation,
        group_instance_id=None if consumer is None else consumer.instance_id,
        topics=[
            COMMIT.OffsetCommitRequestTopic(
                topic_id=topic_id,
                name=topic,
                partitions=[partition(partition_index=index, committed_offset=offset) for index, offset in offsets.items()],
            )
        ],
    )


def fetch(
    group_id: str, topic_id: UUID, partitions: tuple[int, ...], *, require_stable: bool, topic: str, member: Any = None
) -> Any:
    """An OffsetFetch for one group, of anybody or of a member that says so."""
    group = FETCH.OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=None if member is None else member.member_id,
        member_epoch=-1 if member is None else member.generation,
        topics=[FETCH.OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=partitions)],
    )
    return FETCH.OffsetFetchRequest(groups=[group], require_stable=require_stable)


def delete(group_id: str) -> Any:
    """A DeleteGroups for one group."""
    return DELETE.DeleteGroupsRequest(groups_names=[group_id])


def describe(group_id: str) -> Any:
    """A DescribeGroups for one group."""
    return DESCRIBE.DescribeGroupsRequest(groups=[group_id])


def list_groups(states: tuple[str, ...]) -> Any:
    """A ListGroups for groups in one of ``states``, or in any."""
    return LIST.ListGroupsRequest(states_filter=states)
