"""StreamsGroupDescribe, versions 0 and 1: streams groups, their topologies, members and tasks (KIP-1071).

Version 1 names the assignor (KIP-1357). A missing group, or one of another type, is GROUP_ID_NOT_FOUND. If streams groups are
off, each group is UNSUPPORTED_VERSION.

Deliberate gap: no plugin for topology descriptions (KIP-1331), so none is stored.
"""

from collections.abc import Iterable

from odradek.broker.api.group_descriptions import PIECES, GroupDescription
from odradek.broker.api.streams_group_heartbeat import is_served
from odradek.protocol.message_types.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

_NOT_STORED = 1


def _fields(request: StreamsGroupDescribeRequest) -> dict[str, object]:
    return {"topology_description_status": _NOT_STORED} if request.include_topology_description else {}


def _topics(group: DescribedGroup) -> Iterable[str]:
    for subtopology in () if group.topology is None else group.topology.subtopologies or ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            yield topic.name


_description = GroupDescription(
    is_served,
    StreamsGroupDescribeResponse,
    DescribedGroup,
    lambda shard, group_id, offset: shard.describe_streams_group(group_id, offset),
    _topics,
    _fields,
)

pieces = PIECES
has_unbounded_response = True
handle = _description.handle
rule = _description.rule
