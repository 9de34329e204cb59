"""SyncGroup, versions 0 to 5: the leader hands in a generation's assignment; each member fetches its own.

Since version 3 for static members (KIP-345), since 5 with the protocol that the client assumes (KIP-559). The decisions are made
in ``coordinator.group.classic.membership``.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import GuardedRequest, reads_group
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

# From this version on a request must name its protocol.
_WITH_PROTOCOL: Final = 5

has_unbounded_response = True


def handle(services: "GroupServices", context: "RequestContext", request: SyncGroupRequest) -> "Reply[SyncGroupResponse]":
    """Pass the request to its group's shard."""
    reply: Reply[SyncGroupResponse | KafkaError] = Reply()
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", context.version)
    services.groups.runtime.write(request.group_id, lambda shard: shard.sync_group(member, request, reply), reply)
    return reply.then(_response)


def _response(outcome: SyncGroupResponse | KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=outcome.code) if isinstance(outcome, KafkaError) else outcome


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group. A request without its protocol is refused before that."""
    request = guarded.request
    if guarded.context.version >= _WITH_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        return guarded.refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return reads_group(guarded)
