"""SyncGroup, versions 0 to 5: hand in a generation's assignment, as its leader, or fetch one's own.

Since version 3 for static members (KIP-345), since 5 with the protocol that the client believes in (KIP-559). What is decided
stands in ``coordinator.group.classic.sync``.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import Asked, reads_group
from odradek.coordinator.group.config import MemberContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.sync_group import (
    SyncGroupRequest,
    SyncGroupResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import GroupServices
    from odradek.common.context import RequestContext

# From this version on a request has its protocol.
_WITH_PROTOCOL: Final = 5

may_answer_much = True


def handle(services: "GroupServices", context: "RequestContext", request: SyncGroupRequest) -> "Reply[SyncGroupResponse]":
    """Hand the request to its group's shard."""
    reply: Reply[SyncGroupResponse | KafkaError] = Reply()
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", context.version)
    services.groups.runtime.write(request.group_id, lambda shard: shard.sync_group(member, request, reply), reply)
    return reply.then(_response)


def _response(outcome: SyncGroupResponse | KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=outcome.code) if isinstance(outcome, KafkaError) else outcome


def rule(asked: "Asked") -> object:
    """READ on the group; a request that lacks its protocol is refused for that first."""
    request = asked.request
    if asked.context.version >= _WITH_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        return asked.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return reads_group(asked)
