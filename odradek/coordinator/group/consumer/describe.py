"""ConsumerGroupDescribe: a group and its members as the log has them at its committed offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.member import NOTHING
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.coordinator.group.consumer.groups import ConsumerGroups
    from odradek.coordinator.group.consumer.member import ConsumerMember, Partitions

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


def describe_consumer_group(groups: ConsumerGroups, group_id: str, at_offset: int) -> Generator[None, None, DescribedGroup]:
    """Build the DescribedGroup of ConsumerGroupDescribe. Raises KafkaError: GROUP_ID_NOT_FOUND.

    A generator that pauses after each member. Everything that may change is read before the first pause.
    """
    group = groups.registry.stored.get_at(group_id, at_offset)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"not a consumer group: {group_id}")
    counts = dict(group.assignor_counts.items_at(at_offset))
    assignment_epoch, _ = group.target_metadata.get_at(at_offset)
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state_at(at_offset).value,
        group_epoch=group.epoch.get_at(at_offset),
        assignment_epoch=assignment_epoch,
        assignor_name=min(counts, key=lambda name: (-counts[name], name), default=groups.assignor_names[0]),
    )
    standing = [
        (member, group.targets.get_at(member_id, at_offset) or NOTHING) for member_id, member in group.members.items_at(at_offset)
    ]
    members = []
    for member, target in standing:
        members.append(_described(groups, member, target))
        yield None
    return described._replace(members=members)


def _described(groups: ConsumerGroups, member: ConsumerMember, target: Partitions) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_named(groups, member.held()),
        target_assignment=_named(groups, target),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _named(groups: ConsumerGroups, partitions: Partitions) -> Assignment:
    """Add topic names. Topics that no longer exist are left out."""
    named = ((topic_id, groups.topics.name_of(topic_id), indexes) for topic_id, indexes in partitions.items())
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(indexes))
            for topic_id, name, indexes in named
            if name is not None
        ]
    )
