"""ShareGroupHeartbeat, version 1: a member joins a share group, stays in it, or leaves it (KIP-932).

The decisions are made in ``coordinator.group.share.heartbeat``. The share coordinator initializes the states of new share
partitions after the answer; a later heartbeat has their assignment. UNSUPPORTED_VERSION if the feature share.version is at 0.

Deliberate gap: none.
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.api.consumer_group_heartbeat import refusal
from odradek.broker.api.share_requests import LONGEST_MEMBER_ID
from odradek.broker.coordination.share_group_states import initialize_for_members
from odradek.common.logging import log
from odradek.controller.metadata.features import SHARE_VERSION
from odradek.coordinator.group.config import MemberContext
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareGroupServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext
    from odradek.coordinator.group.share.heartbeat import HeartbeatOutcome
    from odradek.coordinator.group.share.state_partitions import SharePartitionStates
    from odradek.timing.reply import Reply

has_unbounded_response = True


def is_served(services: "ShareGroupServices") -> bool:
    """Return whether share groups are on."""
    return services.controller.image.features.get(SHARE_VERSION, 0) >= 1


def handle(
    services: "ShareGroupServices", context: "RequestContext", request: ShareGroupHeartbeatRequest
) -> "ShareGroupHeartbeatResponse | Reply[ShareGroupHeartbeatResponse]":
    """Hand the request to its group's shard. HOT."""
    if not is_served(services):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not 0 < len(request.member_id) <= LONGEST_MEMBER_ID:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", context.version)
    reply = services.groups.runtime.write(request.group_id, lambda shard: shard.share_group_heartbeat(member, request))
    return reply.then(partial(_response, services, request.group_id))


def _response(
    services: "ShareGroupServices", group_id: str, outcome: "HeartbeatOutcome | KafkaError"
) -> ShareGroupHeartbeatResponse:
    if isinstance(outcome, KafkaError):
        return ShareGroupHeartbeatResponse(error_code=outcome.code, error_message=outcome.reason or None)
    if outcome.states is not None:
        services.call_soon(partial(_initialize, services, group_id, outcome.states))
    return outcome.response


def _initialize(services: "ShareGroupServices", group_id: str, states: "SharePartitionStates") -> None:
    """Have the states initialized beside the clients' requests."""

    def finished(outcome: Exception | None) -> None:
        if outcome is not None:
            log.error("cannot initialize share partitions", outcome, group=group_id)

    work = initialize_for_members(services.groups, services.share_persister, group_id, states)
    services.slices.run(work).when_done(finished)


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group, and DESCRIBE on each topic that is subscribed to."""
    if not is_served(guarded.services):
        return guarded.handle()
    code = refusal(guarded)
    if code:
        return guarded.refused(code)
    return guarded.handle()
