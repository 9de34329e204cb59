"""ConsumerGroupDescribe, versions 0 and 1: consumer groups, their members, and current and target assignments (KIP-848).

Since version 1 it includes the type of each member (KIP-1099). A missing group, or one of another type, is GROUP_ID_NOT_FOUND. If
the protocol is off, each group is UNSUPPORTED_VERSION.

Deliberate gap: none.
"""

from collections.abc import Iterable

from odradek.broker.api.consumer_group_heartbeat import is_served
from odradek.broker.api.group_descriptions import PIECES, GroupDescription
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeResponse, DescribedGroup


def _topics(group: DescribedGroup) -> Iterable[str]:
    return (
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )


_description = GroupDescription(
    is_served,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    lambda shard, group_id, offset: shard.describe_consumer_group(group_id, offset),
    _topics,
)

pieces = PIECES
has_unbounded_response = True
handle = _description.handle
rule = _description.rule
