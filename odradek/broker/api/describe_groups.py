"""DescribeGroups, versions 0 to 6: groups of the classic protocol, with their members and assignments.

Since version 3 with the client's authorized operations (all of them without an authorizer); since 4 with instance ids. A missing
group is GROUP_ID_NOT_FOUND since version 6 (KIP-1043), before that it is Dead.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.broker.api.acl_messages import GROUP_OPERATIONS, NO_OPERATIONS, with_group_operations
from odradek.broker.large import FEW, Pieces, Repeated, answer_in_slices, each_once
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import SlicedGroupServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("groups",), ("groups",), FEW, Repeated.ALIKE)
has_unbounded_response = True


def handle(
    services: "SlicedGroupServices", context: "RequestContext", request: DescribeGroupsRequest
) -> "Answer[DescribeGroupsResponse]":
    """Ask each group's shard, in slices."""
    return answer_in_slices(services, context, _describe_all(services, context.version, request))


def _describe_all(
    services: "SlicedGroupServices", version: int, request: DescribeGroupsRequest
) -> "Generator[Reply[Any] | None, Any, DescribeGroupsResponse]":
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NO_OPERATIONS
    groups = yield from each_once(request.groups, lambda group_id: _describe(services, group_id, version, operations))
    return DescribeGroupsResponse(groups=groups)


def _describe(
    services: "SlicedGroupServices", group_id: str, version: int, operations: int
) -> "Generator[Reply[Any] | None, Any, DescribedGroup]":
    yield from ()
    try:
        group = services.groups.runtime.read(group_id, lambda shard, offset: shard.describe_group(group_id, version, offset))
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    return group if group.error_code else group._replace(authorized_operations=operations)


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each group."""
    convert = partial(with_group_operations, guarded)
    return authorize_each(
        guarded, AclOperation.DESCRIBE, AclResourceType.GROUP, field="groups", answered="groups", convert=convert
    )
