"""DescribeGroups, versions 0 to 6: groups of the classic protocol, with their members and what these were assigned.

Since version 3 with the operations that the client may perform, all of which it may without an authorizer; since 4 with instance
ids. Since version 6 a group that is not there is GROUP_ID_NOT_FOUND (KIP-1043); before, it is Dead.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.metadata.topic_description import GROUP_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.DESCRIBE_GROUPS)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:
    """Ask each group's shard."""
    groups = [_describe(broker, group_id, context.version) for group_id in request.groups]
    if request.include_authorized_operations:
        groups = [group if group.error_code else group._replace(authorized_operations=GROUP_OPERATIONS) for group in groups]
    return M.DescribeGroupsResponse(groups=groups)


def _describe(broker: "Broker", group_id: str, version: int) -> Any:
    try:
        return broker.groups.runtime.read(group_id, lambda shard, offset: shard.describe_group(group_id, version, offset))
    except KafkaError as error:
        return M.DescribedGroup(group_id=group_id, error_code=error.code)
