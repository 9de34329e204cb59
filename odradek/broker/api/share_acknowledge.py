"""ShareAcknowledge, versions 1 and 2: a member of a share group acknowledges records, or ends its share session (KIP-932).

Since version 2 it may renew acquisition locks (KIP-1222). The request must belong to the member's session. Epoch 0 is refused;
epoch -1 ends the session and releases the records that the member still has. The decisions are made in ``share.acknowledgement``.

Deliberate gap: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.api.share_requests import WITH_RENEWAL, NamedPartitions, acknowledge, batches_of, refusal
from odradek.broker.replica.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from uuid import UUID

    from odradek.broker.api.services import ShareServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.broker.share.share_partition_manager import Outcomes
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: ShareServices,
    context: RequestContext,
    request: ShareAcknowledgeRequest,
    guarded: GuardedRequest | None = None,
) -> ShareAcknowledgeResponse | Reply[ShareAcknowledgeResponse]:
    """Acknowledge records. SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, and the errors of ``share_requests``."""
    code = refusal(services, request, guarded)
    if code is not None:
        return ShareAcknowledgeResponse(error_code=code)
    group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        return ShareAcknowledgeResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    shares = services.share_partitions
    try:
        session = shares.sessions.advance(group_id, member_id, epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    batches = batches_of(request)
    known = NamedPartitions(services, guarded, batches)
    reply = acknowledge(services, request, batches, known, may_renew=context.version >= WITH_RENEWAL)

    def respond(outcomes: Outcomes) -> ShareAcknowledgeResponse:
        if epoch == FINAL_EPOCH:
            shares.release_session(session)
        lock_ms = shares.configs.limits(group_id).record_lock_duration_ms
        return ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms, responses=_topics(outcomes))

    return reply.then(respond)


def _topics(outcomes: Outcomes) -> list[ShareAcknowledgeTopicResponse]:
    topics: dict[UUID, list[PartitionData]] = {}
    for name, error in outcomes.items():
        data = PartitionData(partition_index=name.partition)
        if error is not None:
            data = data._replace(error_code=error.code, error_message=error.reason or None)
        topics.setdefault(name.topic_id, []).append(data)
    return [ShareAcknowledgeTopicResponse(topic_id, partitions) for topic_id, partitions in topics.items()]


def rule(guarded: GuardedRequest) -> object:
    """Require READ on the group, and on each topic."""
    return handle(guarded.services, guarded.context, guarded.request, guarded)
