"""ListGroups, versions 0 to 5: the groups that this broker coordinates.

Filtered by state since version 4 (KIP-518), by type since 5 (KIP-848).

COORDINATOR_LOAD_IN_PROGRESS while some groups may still be unknown.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import answer_in_slices
from odradek.broker.security.acl.rules import GuardedRequest, keep_visible
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import SlicedGroupServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext

has_unbounded_response = True


def handle(
    services: "SlicedGroupServices", context: "RequestContext", request: ListGroupsRequest
) -> "Answer[ListGroupsResponse]":
    """Ask every shard, in slices."""
    return answer_in_slices(services, context, _list(services, request))


def _list(services: "SlicedGroupServices", request: ListGroupsRequest) -> "Generator[None, None, ListGroupsResponse]":
    runtime = services.groups.runtime
    groups: list[ListedGroup] = []
    # Imported by the first request, like the coordinator.
    from odradek.coordinator.group.registry import group_filter  # 3.3 ms

    states = group_filter(request.states_filter)
    types = group_filter(request.types_filter)
    for partition in runtime.partitions():
        try:
            groups += yield from runtime.read(partition, lambda shard, offset: shard.list_groups(states, types, offset))
        except KafkaError as error:
            # Groups of another coordinator are listed there.
            if error.code != ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=error.code)
        yield None
    return ListGroupsResponse(groups=groups)


def rule(guarded: "GuardedRequest") -> object:
    """Show all groups with DESCRIBE on the cluster; otherwise only groups that the client may DESCRIBE."""
    access = guarded.access
    if access.allows_cluster(AclOperation.DESCRIBE, tells=False):
        return guarded.handle()

    def may_see(group: ListedGroup) -> bool:
        return access.allows(AclOperation.DESCRIBE, AclResourceType.GROUP, group.group_id, tells=False)

    return keep_visible(guarded, guarded.handle(), "groups", may_see)
