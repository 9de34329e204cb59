"""OffsetDelete, version 0: deletes a group's committed offsets (KIP-496).

The decisions are made in ``coordinator.group.offset_deletion``. Unknown partitions get UNKNOWN_TOPIC_OR_PARTITION here.
Errors of the group apply to the whole request: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.large import TOPICS, Pieces
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.group.offset_deletion import delete_offsets
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.api.services import OffsetServices
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.image import MetadataImage
    from odradek.timing.reply import Reply

pieces = Pieces(TOPICS, TOPICS)


def handle(
    services: "OffsetServices", _context: "RequestContext", request: OffsetDeleteRequest
) -> "OffsetDeleteResponse | Reply[OffsetDeleteResponse]":
    """Delete the offsets of partitions that exist. Returns a Reply, except for an empty group id."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    request, refused = _set_aside_unknown(services.controller.image, request)

    def finish(outcome: OffsetDeleteResponse | KafkaError) -> OffsetDeleteResponse:
        if isinstance(outcome, KafkaError):
            return OffsetDeleteResponse(error_code=outcome.code)
        return OffsetDeleteResponse(topics=_merged(outcome.topics, refused))

    return services.groups.runtime.write(request.group_id, lambda shard: delete_offsets(shard.offsets, request)).then(finish)


def _set_aside_unknown(
    image: "MetadataImage", request: OffsetDeleteRequest
) -> tuple[OffsetDeleteRequest, dict[str, list[OffsetDeleteResponsePartition]]]:
    """Split the request into the part that exists, and the answers for other partitions by topic."""
    refused: dict[str, list[OffsetDeleteResponsePartition]] = {}
    known = []
    for topic in request.topics:
        found = image.topics.get(topic.name)
        here = {} if found is None else found.partitions
        unknown = [each for each in topic.partitions if each.partition_index not in here]
        if unknown:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.setdefault(topic.name, []).extend(
                OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code) for each in unknown
            )
        existing = [each for each in topic.partitions if each.partition_index in here]
        if existing:
            known.append(topic._replace(partitions=existing))
    return request._replace(topics=known), refused


def _merged(
    deleted: "Iterable[OffsetDeleteResponseTopic]", refused: dict[str, list[OffsetDeleteResponsePartition]]
) -> list[OffsetDeleteResponseTopic]:
    """Merge the deleted and the refused partitions into one answer per topic."""
    left = dict(refused)
    topics = [topic._replace(partitions=[*topic.partitions, *left.pop(topic.name, ())]) for topic in deleted]
    return topics + [OffsetDeleteResponseTopic(name=name, partitions=partitions) for name, partitions in left.items()]


def rule(guarded: "GuardedRequest") -> object:
    """Require DELETE on the group and READ on each topic."""
    if not guarded.allows(AclOperation.DELETE, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return authorize_each(guarded, AclOperation.READ, AclResourceType.TOPIC, lambda topic: topic.name)
