"""AlterShareGroupOffsets, version 0: new start offsets for the partitions of a share group without members (KIP-932).

Creates a missing group. The decisions are made in ``coordinator.group.share.offsets``; the share coordinator has the offsets.
Errors of the group apply to the whole request: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND for a group of another type, NON_EMPTY_GROUP.
UNSUPPORTED_VERSION if the feature share.version is at 0.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any

from odradek.broker.api.share_group_heartbeat import is_served
from odradek.broker.coordination.share_group_states import initialize
from odradek.broker.large import FEW, Pieces, answer_in_slices
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.group.share import offsets
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import ShareGroupServices
    from odradek.broker.coordination.share_group_states import Errors
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partitions"), ("responses", "partitions"), FEW)


def handle(
    services: "ShareGroupServices", context: "RequestContext", request: AlterShareGroupOffsetsRequest
) -> "Answer[AlterShareGroupOffsetsResponse]":
    """Ask the group's shard, then the share coordinators."""
    if not is_served(services):
        return _refusal(KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported."))
    if not request.group_id:
        return _refusal(KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is missing."))
    return answer_in_slices(services, context, _alter(services, request))


def _refusal(error: KafkaError) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.reason or None)


def _alter(
    services: "ShareGroupServices", request: AlterShareGroupOffsetsRequest
) -> "Generator[Reply[Any] | None, Any, AlterShareGroupOffsetsResponse]":
    group_id = request.group_id
    runtime = services.groups.runtime
    altered: offsets.Alteration | KafkaError = yield runtime.write(group_id, lambda shard: offsets.alter(shard.share, request))
    if isinstance(altered, KafkaError):
        return _refusal(altered)
    states = altered.states
    failed = yield from initialize(services.share_persister, group_id, states)
    if not failed and states.start_offsets:
        # As in Kafka, the answer does not tell of a failure of this last step: the share coordinator has the offsets.
        yield runtime.write(group_id, lambda shard: offsets.note_initialized(shard.share, group_id, states.partitions()))
    return AlterShareGroupOffsetsResponse(responses=[_with_errors(topic, failed) for topic in altered.topics])


def _with_errors(topic: AlterShareGroupOffsetsResponseTopic, failed: "Errors") -> AlterShareGroupOffsetsResponseTopic:
    if topic.topic_id is None or not failed:
        return topic
    partitions = []
    for partition in topic.partitions:
        error = failed.get((topic.topic_id, partition.partition_index))
        partitions.append(
            partition if error is None else partition._replace(error_code=error.code, error_message=error.reason or None)
        )
    return topic._replace(partitions=partitions)


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group and on each topic."""
    if not is_served(guarded.services):
        return guarded.handle()
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return authorize_each(guarded, AclOperation.READ, AclResourceType.TOPIC, lambda topic: topic.topic_name, answered="responses")
