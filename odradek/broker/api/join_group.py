"""JoinGroup, versions 0 to 9: a member joins or rejoins a group. Answered when the group's next generation begins.

Since version 1 with a separate rebalance timeout, since 4 with a member id given beforehand (KIP-394), since 5 for static
members (KIP-345), since 7 with the protocol type in the answer (KIP-559), since 8 with a reason (KIP-800). Since version 9 a
returning static leader can skip the assignment (KIP-814). The decisions are made in ``coordinator.group.classic.join``.

A consumer group (KIP-848) with members accepts classic members, unless ``group.consumer.migration.policy`` is ``disabled``
(``coordinator.group.migration``); an empty one becomes a classic group. Deliberate gap: there are no share or streams groups.
"""

from typing import TYPE_CHECKING, Final

from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.group.config import MemberContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.api.services import GroupServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext


_NULLABLE_PROTOCOL_SINCE: Final = 7

has_unbounded_response = True


def handle(
    services: "GroupServices",
    context: "RequestContext",
    request: JoinGroupRequest,
    may_see: "Callable[[str], bool] | None" = None,
) -> "Reply[JoinGroupResponse]":
    """Pass the request to its group's shard. Regular expressions match only topics that the client ``may_see``; None: all."""
    reply: Reply[JoinGroupResponse | KafkaError] = Reply()
    version = context.version
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", version, may_see)
    services.groups.runtime.write(request.group_id, lambda shard: shard.join_group(member, request, reply), reply)
    return reply.then(lambda outcome: _response(outcome, version))


def _response(outcome: JoinGroupResponse | KafkaError, version: int) -> JoinGroupResponse:
    response = JoinGroupResponse(error_code=outcome.code) if isinstance(outcome, KafkaError) else outcome
    if response.protocol_name is None and version < _NULLABLE_PROTOCOL_SINCE:
        return response._replace(protocol_name="")
    return response


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group. A consumer group may resolve its regular expressions here, as with a heartbeat."""
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            protocol_name="" if guarded.context.version < _NULLABLE_PROTOCOL_SINCE else None,
        )
    return handle(guarded.services, guarded.context, guarded.request, guarded.may_describe_topic)
