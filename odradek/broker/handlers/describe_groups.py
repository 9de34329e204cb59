"""DescribeGroups, versions 0 to 6: groups of the classic protocol, with their members and what these were assigned.

Since version 3 with the operations that the client may perform, all of which it may without an authorizer; since 4 with instance
ids. Since version 6 a group that is not there is GROUP_ID_NOT_FOUND (KIP-1043); before, it is Dead.
"""

from typing import TYPE_CHECKING

from odradek.broker.handlers.topic_description import GROUP_OPERATIONS
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import GroupServices


def handle(services: "GroupServices", context: "RequestContext", request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Ask each group's shard."""
    groups = [_describe(services, group_id, context.version) for group_id in request.groups]
    if request.include_authorized_operations:
        groups = [group if group.error_code else group._replace(authorized_operations=GROUP_OPERATIONS) for group in groups]
    return DescribeGroupsResponse(groups=groups)


def _describe(services: "GroupServices", group_id: str, version: int) -> DescribedGroup:
    try:
        return services.groups.runtime.read(group_id, lambda shard, offset: shard.describe_group(group_id, version, offset))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
