"""ShareGroupDescribe, version 1: share groups, their members and assignments (KIP-932).

A missing group, or one of another type, is GROUP_ID_NOT_FOUND. If share groups are off, each group is UNSUPPORTED_VERSION.

Deliberate gap: none.
"""

from collections.abc import Iterable

from odradek.broker.api.group_descriptions import PIECES, GroupDescription
from odradek.broker.api.share_group_heartbeat import is_served
from odradek.protocol.message_types.share_group_describe import DescribedGroup, ShareGroupDescribeResponse


def _topics(group: DescribedGroup) -> Iterable[str]:
    return (topic.topic_name for member in group.members for topic in member.assignment.topic_partitions)


_description = GroupDescription(
    is_served,
    ShareGroupDescribeResponse,
    DescribedGroup,
    lambda shard, group_id, offset: shard.describe_share_group(group_id, offset),
    _topics,
)

pieces = PIECES
has_unbounded_response = True
handle = _description.handle
rule = _description.rule
