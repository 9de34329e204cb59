"""LeaveGroup, versions 0 to 5: members leave, so that the others need not wait for their sessions to expire.

Since version 3 several members leave at once, and static ones by instance id alone (KIP-345). Since 5 with reasons (KIP-800).
Before version 3 the one member's error is the response's. The decisions are made in ``coordinator.group.classic.membership``.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import reads_group
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import GroupServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


_MEMBERS_SINCE: Final = 3


def handle(services: "GroupServices", context: "RequestContext", request: LeaveGroupRequest) -> "Reply[LeaveGroupResponse]":
    """Pass the request to its group's shard."""
    version = context.version

    def finish(outcome: LeaveGroupResponse | KafkaError) -> LeaveGroupResponse:
        response = LeaveGroupResponse(error_code=outcome.code) if isinstance(outcome, KafkaError) else outcome
        if version < _MEMBERS_SINCE and response.members:
            return LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
        return response

    return services.groups.runtime.write(request.group_id, lambda shard: shard.leave_group(request)).then(finish)


rule = reads_group
