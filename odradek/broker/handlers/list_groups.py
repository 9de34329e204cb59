"""ListGroups, versions 0 to 5: the groups that are coordinated here.

Since version 4 by state (KIP-518), since 5 by type (KIP-848).

COORDINATOR_LOAD_IN_PROGRESS while any of them may still be unknown.
"""

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import GroupServices
    from odradek.coordinator.group.group_shard import GroupShard


def handle(services: "GroupServices", _context: "RequestContext", request: ListGroupsRequest) -> ListGroupsResponse:
    """Ask every shard."""
    runtime = services.groups.runtime
    groups: list[ListedGroup] = []
    # With the first request that needs it, as the coordinator is.
    from odradek.coordinator.group.group_describe import group_filter

    states = group_filter(request.states_filter)
    types = group_filter(request.types_filter)

    def list_groups(shard: "GroupShard", committed_offset: int) -> list[ListedGroup]:
        return shard.list_groups(states, types, committed_offset)

    for partition in runtime.partitions():
        try:
            groups += runtime.read(partition, list_groups)
        except KafkaError as error:
            # What is not here is listed where it is.
            if error.code != ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=error.code)
    return ListGroupsResponse(groups=groups)
