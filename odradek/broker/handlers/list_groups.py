"""ListGroups, versions 0 to 5: the groups that are coordinated here.

Since version 4 by state (KIP-518), since 5 by type (KIP-848).

COORDINATOR_LOAD_IN_PROGRESS while any of them may still be unknown.
"""

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker
    from odradek.coordinator.group.group_shard import GroupShard

M = messages(ApiKey.LIST_GROUPS)


def handle(broker: "Broker", _context: "RequestContext", request: Any) -> Any:
    """Ask every shard."""
    runtime = broker.groups.runtime
    groups: list[Any] = []

    def list_groups(shard: "GroupShard", committed_offset: int) -> list[Any]:
        return shard.list_groups(request.states_filter, request.types_filter, committed_offset)

    for partition in runtime.partitions():
        try:
            groups += runtime.read(partition, list_groups)
        except KafkaError as error:
            # What is not here is listed where it is.
            if error.code != ErrorCode.NOT_COORDINATOR:
                return M.ListGroupsResponse(error_code=error.code)
    return M.ListGroupsResponse(groups=groups)
