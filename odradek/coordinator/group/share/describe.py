"""ShareGroupDescribe: a group and its members as the log has them at its committed offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.assignor.simple import SIMPLE
from odradek.coordinator.group.share.group import ShareGroup
from odradek.coordinator.group.share.member import ShareGroupState
from odradek.protocol.message_types.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.coordinator.group.share.groups import ShareGroups
    from odradek.coordinator.group.share.member import ShareGroupMember


def describe_share_group(groups: ShareGroups, group_id: str, at_offset: int) -> Generator[None, None, DescribedGroup]:
    """Build the DescribedGroup of ShareGroupDescribe. Raises KafkaError: GROUP_ID_NOT_FOUND.

    A generator that pauses after each member. Everything that may change is read before the first pause.
    """
    group = groups.registry.stored.get_at(group_id, at_offset)
    if not isinstance(group, ShareGroup):
        raise groups.not_found(group_id)
    standing = [member for _, member in group.members.items_at(at_offset)]
    assignment_epoch, _ = group.target_metadata.get_at(at_offset)
    described = DescribedGroup(
        group_id=group_id,
        group_state=(ShareGroupState.STABLE if standing else ShareGroupState.EMPTY).value,
        group_epoch=group.epoch.get_at(at_offset),
        assignment_epoch=assignment_epoch,
        assignor_name=SIMPLE,
    )
    members = []
    for member in standing:
        members.append(_described(groups, member))
        yield None
    return described._replace(members=members)


def _described(groups: ShareGroups, member: ShareGroupMember) -> Member:
    named = ((topic_id, groups.topics.name_of(topic_id), indexes) for topic_id, indexes in member.assigned.items())
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
                for topic_id, name, indexes in named
                if name is not None
            ]
        ),
    )
