"""ConsumerGroupDescribe, versions 0 and 1: consumer groups, their members, and what these have and are to have (KIP-848).

Since version 1 with the kind of each member (KIP-1099). A group of another kind, or none, is GROUP_ID_NOT_FOUND. With the
protocol off each group is UNSUPPORTED_VERSION.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.handlers.consumer_group_heartbeat import is_served
from odradek.broker.handlers.topic_description import GROUP_OPERATIONS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import GroupProtocolServices


def handle(
    services: "GroupProtocolServices", _context: "RequestContext", request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Ask each group's shard."""
    if not is_served(services):
        groups = [DescribedGroup(error_code=ErrorCode.UNSUPPORTED_VERSION, group_id=group_id) for group_id in request.group_ids]
    else:
        groups = [_describe(services, group_id) for group_id in request.group_ids]
        if request.include_authorized_operations:
            groups = [group if group.error_code else group._replace(authorized_operations=GROUP_OPERATIONS) for group in groups]
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(services: "GroupProtocolServices", group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return services.groups.runtime.read(group_id, lambda shard, offset: shard.describe_consumer_group(group_id, offset))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.reason or None)
