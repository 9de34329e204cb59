"""OffsetCommit, versions 2 to 10: a member commits its offsets, or any client those of a group without members.

Up to version 4 with a retention time (removed by KIP-211), from 6 on with leader epochs (KIP-320), from 7 on with instance ids
(KIP-345), from 10 on by topic id (KIP-848). The decisions are made in ``coordinator.group.offset_commit``. The handler only
checks that topics exist, which only the broker knows. An error of one partition does not stop the others.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.group.offset_commit import commit_offsets
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from odradek.broker.api.services import OffsetServices
    from odradek.common.context import RequestContext
    from odradek.controller.metadata.image import MetadataImage
    from odradek.coordinator.group.offset_commit import CommitTopic
    from odradek.protocol.message_types.offset_commit import OffsetCommitRequestPartition
    from odradek.timing.reply import Reply

_FIRST_VERSION_BY_ID: Final = 10


def handle(
    services: "OffsetServices", context: "RequestContext", request: OffsetCommitRequest
) -> "OffsetCommitResponse | Reply[OffsetCommitResponse]":
    """Commit the offsets of partitions that exist. Returns a Reply unless none of them exists."""
    version = context.version
    topics, refused = _set_aside_unknown(services.controller.image, request, by_id=version >= _FIRST_VERSION_BY_ID)
    if not topics:
        return OffsetCommitResponse(topics=refused)

    def finish(outcome: OffsetCommitResponse | KafkaError) -> OffsetCommitResponse:
        if isinstance(outcome, KafkaError):
            return _failed(topics, refused, outcome.code)
        return OffsetCommitResponse(topics=_merged(outcome.topics, refused)) if refused else outcome

    reply = services.groups.runtime.write(request.group_id, lambda shard: commit_offsets(shard.offsets, request, topics, version))
    # The shard decides its operations in the order in which they arrive.
    reply.is_decided = True
    return reply.then(finish)


def _set_aside_unknown(
    image: "MetadataImage", request: OffsetCommitRequest, *, by_id: bool
) -> "tuple[list[CommitTopic], list[OffsetCommitResponseTopic]]":
    """Split the request into existing topics, each with name and id, and the answers for the rest. HOT."""
    refused = []
    topics: list[CommitTopic] = []
    for topic in request.topics:
        topic_id, asked, name = topic
        found = (None if topic_id is None else image.topics_by_id.get(topic_id)) if by_id else image.topics.get(name)
        if found is None:
            error_code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refusal(name, topic_id, asked, error_code))
            continue
        known = found.partitions
        for partition in asked:
            if partition.partition_index not in known:
                unknown = [each for each in asked if each.partition_index not in known]
                refused.append(_refusal(found.name, found.topic_id, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                asked = [each for each in asked if each.partition_index in known]
                break
        topics.append((found.topic_id, asked, found.name))
    return [topic for topic in topics if topic[1]] if refused else topics, refused


def _refusal(
    name: str,
    topic_id: "UUID | None",
    partitions: "Iterable[OffsetCommitRequestPartition | OffsetCommitResponsePartition]",
    error_code: ErrorCode,
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=name,
        topic_id=topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
            for partition in partitions
        ],
    )


def _merged(
    committed: "Iterable[OffsetCommitResponseTopic]", refused: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """Merge the committed and the refused partitions into one answer per topic."""
    partitions: dict[tuple[str, UUID | None], list[OffsetCommitResponsePartition]] = {}
    for topic in (*refused, *committed):
        partitions.setdefault((topic.name, topic.topic_id), []).extend(topic.partitions)
    return [
        OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=each) for (name, topic_id), each in partitions.items()
    ]


def _failed(topics: "list[CommitTopic]", refused: list[OffsetCommitResponseTopic], error_code: ErrorCode) -> OffsetCommitResponse:
    """Return the same error for each partition of the request, whatever its own error was."""
    failed = [_refusal(topic.name, topic.topic_id, topic.partitions, error_code) for topic in refused]
    failed += [_refusal(name, topic_id, partitions, error_code) for topic_id, partitions, name in topics]
    return OffsetCommitResponse(topics=failed)


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group and on each topic."""
    if not guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    by_id = guarded.context.version >= _FIRST_VERSION_BY_ID
    return authorize_each(guarded, AclOperation.READ, AclResourceType.TOPIC, lambda topic: guarded.topic_name(topic, by_id=by_id))
