"""DeleteShareGroupOffsets, version 0: forgets the start offsets of topics in a share group without members (KIP-932).

The decisions are made in ``coordinator.group.share.offsets``. A topic without initialized partitions is
UNKNOWN_TOPIC_OR_PARTITION. Errors of the group apply to the whole request: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND,
NON_EMPTY_GROUP. UNSUPPORTED_VERSION if the feature share.version is at 0.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.api.share_group_heartbeat import is_served
from odradek.broker.coordination.share_group_states import delete_offsets
from odradek.broker.large import FEW, Pieces, answer_in_slices
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import ShareGroupServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("topics",), ("responses",), FEW)


def handle(
    services: "ShareGroupServices", context: "RequestContext", request: DeleteShareGroupOffsetsRequest
) -> "Answer[DeleteShareGroupOffsetsResponse]":
    """Ask the group's shard, then the share coordinators, and the shard again."""
    if not is_served(services):
        return _refusal(KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported."))
    if not request.group_id:
        return _refusal(KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is missing."))
    return answer_in_slices(services, context, _delete(services, request))


def _refusal(error: KafkaError) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.reason or None)


def _delete(
    services: "ShareGroupServices", request: DeleteShareGroupOffsetsRequest
) -> "Generator[Reply[Any] | None, Any, DeleteShareGroupOffsetsResponse]":
    outcome = yield from delete_offsets(services.groups, services.share_persister, request)
    if isinstance(outcome, KafkaError):
        return _refusal(outcome)
    deletion, failed = outcome
    topics = services.controller.image.topics_by_id
    deleted = []
    unfinished = []
    for topic_id in deletion.partitions:
        topic = topics.get(topic_id)
        answer = DeleteShareGroupOffsetsResponseTopic(topic_id=topic_id, topic_name="" if topic is None else topic.name)
        error = failed.get(topic_id)
        if error is None:
            deleted.append(answer)
        else:
            unfinished.append(answer._replace(error_code=error.code, error_message=error.reason or None))
    return DeleteShareGroupOffsetsResponse(responses=[*deleted, *deletion.refused, *unfinished])


def rule(guarded: "GuardedRequest") -> object:
    """Require DELETE on the group and READ on each topic."""
    if not is_served(guarded.services):
        return guarded.handle()
    if not guarded.allows(AclOperation.DELETE, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return authorize_each(guarded, AclOperation.READ, AclResourceType.TOPIC, lambda topic: topic.topic_name, answered="responses")
