"""ConsumerGroupHeartbeat, versions 0 and 1: a member joins a consumer group, stays in it, or leaves it (KIP-848).

Since version 1 the client creates the member id (KIP-1082), and may subscribe by a regular expression. The decisions are made in
``coordinator.group.consumer.heartbeat``. UNSUPPORTED_VERSION if the feature group.version is at 0, or ``consumer`` is not in
group.coordinator.rebalance.protocols.

If such a member joins a classic group of consumers, the group becomes a consumer group (``coordinator.group.migration``).

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.features import GROUP_VERSION
from odradek.coordinator.group.config import MemberContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.api.services import GroupProtocolServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def is_served(services: "GroupProtocolServices") -> bool:
    """Return whether the consumer protocol is on."""
    is_on = services.controller.image.features.get(GROUP_VERSION, 0) >= 1
    return is_on and "consumer" in services.config["group.coordinator.rebalance.protocols"]


has_unbounded_response = True


def handle(
    services: "GroupProtocolServices",
    context: "RequestContext",
    request: ConsumerGroupHeartbeatRequest,
    may_see: "Callable[[str], bool] | None" = None,
) -> "ConsumerGroupHeartbeatResponse | Reply[ConsumerGroupHeartbeatResponse]":
    """Hand the request to its group's shard. HOT."""
    if not is_served(services):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", context.version, may_see)
    reply = services.groups.runtime.write(request.group_id, lambda shard: shard.consumer_group_heartbeat(member, request))
    return reply.then(_response)


def _response(outcome: ConsumerGroupHeartbeatResponse | KafkaError) -> ConsumerGroupHeartbeatResponse:
    if isinstance(outcome, KafkaError):
        return ConsumerGroupHeartbeatResponse(error_code=outcome.code, error_message=outcome.reason or None)
    return outcome


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group, and DESCRIBE on each topic that is subscribed to by name.

    A regular expression is resolved by one client's heartbeat. It matches only topics that this client may DESCRIBE.
    """
    if not is_served(guarded.services):
        return guarded.handle()
    code = refusal(guarded)
    if code:
        return guarded.refused(code)
    return handle(guarded.services, guarded.context, guarded.request, guarded.may_describe_topic)


def refusal(guarded: "GuardedRequest") -> ErrorCode:
    """Return the error for a member that may not READ the group, or not DESCRIBE a topic that it names; else NONE."""
    request = guarded.request
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    names = set(request.subscribed_topic_names or ())
    if names and len(guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, names)) < len(names):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE
