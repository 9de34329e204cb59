"""ShareGroupDescribe, version 1: share groups, their members and assignments (KIP-932).

A missing group, or one of another type, is GROUP_ID_NOT_FOUND. If share groups are off, each group is UNSUPPORTED_VERSION.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.api.acl_messages import GROUP_OPERATIONS, NO_OPERATIONS, with_group_operations
from odradek.broker.api.share_group_heartbeat import is_served
from odradek.broker.large import FEW, Pieces, Repeated, answer_in_slices, each_once
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import ShareGroupServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("group_ids",), ("groups",), FEW, Repeated.ALIKE)
has_unbounded_response = True


def handle(
    services: "ShareGroupServices", context: "RequestContext", request: ShareGroupDescribeRequest
) -> "Answer[ShareGroupDescribeResponse]":
    """Ask each group's shard, in slices."""
    if not is_served(services):
        groups = [DescribedGroup(error_code=ErrorCode.UNSUPPORTED_VERSION, group_id=group_id) for group_id in request.group_ids]
        return ShareGroupDescribeResponse(groups=groups)
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "ShareGroupServices", request: ShareGroupDescribeRequest
) -> "Generator[Reply[Any] | None, Any, ShareGroupDescribeResponse]":
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NO_OPERATIONS
    groups = yield from each_once(request.group_ids, lambda group_id: _describe(services, group_id, operations))
    return ShareGroupDescribeResponse(groups=groups)


def _describe(
    services: "ShareGroupServices", group_id: str, operations: int
) -> "Generator[Reply[Any] | None, Any, DescribedGroup]":
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        group: DescribedGroup = yield from services.groups.runtime.read(
            group_id, lambda shard, offset: shard.describe_share_group(group_id, offset)
        )
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.reason or None)
    return group._replace(authorized_operations=operations)


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each group, and on each topic that is assigned to its members."""
    if not is_served(guarded.services):
        return guarded.handle()

    def convert(response: ShareGroupDescribeResponse) -> ShareGroupDescribeResponse:
        return _without_hidden_topics(guarded, with_group_operations(guarded, response))

    return authorize_each(
        guarded, AclOperation.DESCRIBE, AclResourceType.GROUP, field="group_ids", answered="groups", convert=convert
    )


def _without_hidden_topics(guarded: "GuardedRequest", response: ShareGroupDescribeResponse) -> ShareGroupDescribeResponse:
    named = {group.group_id: _topics(group) for group in response.groups}
    seen = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, set().union(*named.values()))
    groups = [
        group
        if named[group.group_id] <= seen
        else DescribedGroup(
            group_id=group.group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has topics that the client may not describe.",
        )
        for group in response.groups
    ]
    return response._replace(groups=groups)


def _topics(group: DescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
