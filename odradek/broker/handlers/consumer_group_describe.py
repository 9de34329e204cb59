"""ConsumerGroupDescribe, versions 0 and 1: consumer groups, their members, and what these have and are to have (KIP-848).

Since version 1 with the kind of each member (KIP-1099). A group of another kind, or none, is GROUP_ID_NOT_FOUND. With the
protocol off each group is UNSUPPORTED_VERSION.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.handlers.consumer_group_heartbeat import is_served
from odradek.broker.handlers.in_slices import answer_in_slices, each_once
from odradek.broker.handlers.topic_description import GROUP_OPERATIONS, NO_OPERATIONS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.in_slices import Answer
    from odradek.broker.handlers.services import GroupProtocolServices
    from odradek.timing.reply import Reply


def handle(
    services: "GroupProtocolServices", context: "RequestContext", request: ConsumerGroupDescribeRequest
) -> "Answer[ConsumerGroupDescribeResponse]":
    """Ask each group's shard, in slices."""
    if not is_served(services):
        groups = [DescribedGroup(error_code=ErrorCode.UNSUPPORTED_VERSION, group_id=group_id) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=groups)
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "GroupProtocolServices", request: ConsumerGroupDescribeRequest
) -> "Generator[Reply[Any] | None, Any, ConsumerGroupDescribeResponse]":
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NO_OPERATIONS
    groups = yield from each_once(request.group_ids, lambda group_id: _describe(services, group_id, operations))
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(
    services: "GroupProtocolServices", group_id: str, operations: int
) -> "Generator[Reply[Any] | None, Any, DescribedGroup]":
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        group: DescribedGroup = yield from services.groups.runtime.read(
            group_id, lambda shard, offset: shard.describe_consumer_group(group_id, offset)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.reason or None)
    return group._replace(authorized_operations=operations)
