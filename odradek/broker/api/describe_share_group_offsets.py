"""DescribeShareGroupOffsets, versions 0 and 1: start offsets of share groups (KIP-932), and since version 1 their lag (KIP-1226).

The share coordinators have the offsets. A partition without a state has offset -1, no error. The lag is the number of records
from the start offset to the end of the partition that are not acknowledged or archived; -1 if it is not known. If share groups
are off, each group is UNSUPPORTED_VERSION.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from odradek.broker.api.share_group_heartbeat import is_served
from odradek.broker.coordination.share_group_states import summaries
from odradek.broker.large import FEW, Pieces, Repeated, answer_in_slices
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.coordinator.group.share import offsets
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from odradek.broker.api.services import ShareGroupServices
    from odradek.broker.coordination.share_group_states import Summary
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.coordinator.share.state import StateSummary

pieces = Pieces(("groups",), ("groups",), FEW, Repeated.AS_OTHERS)
has_unbounded_response = True

_UNKNOWN_OFFSET = -1


def handle(
    services: "ShareGroupServices", context: "RequestContext", request: DescribeShareGroupOffsetsRequest
) -> "Answer[DescribeShareGroupOffsetsResponse]":
    """Ask the share coordinators, one group after the other."""
    if not is_served(services):
        code = ErrorCode.UNSUPPORTED_VERSION
        groups = [DescribeShareGroupOffsetsResponseGroup(group_id=each.group_id, error_code=code) for each in request.groups]
        return DescribeShareGroupOffsetsResponse(groups=groups)
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "ShareGroupServices", request: DescribeShareGroupOffsetsRequest
) -> "Generator[Reply[Any] | None, Any, DescribeShareGroupOffsetsResponse]":
    groups = []
    for group in request.groups:
        groups.append((yield from _describe(services, group)))
        yield None
    return DescribeShareGroupOffsetsResponse(groups=groups)


def _describe(
    services: "ShareGroupServices", group: DescribeShareGroupOffsetsRequestGroup
) -> "Generator[Reply[Any] | None, Any, DescribeShareGroupOffsetsResponseGroup]":
    image = services.controller.image
    missing = []
    partitions: dict[UUID, Sequence[int]] = {}
    names: dict[UUID, str] = {}
    if group.topics is None:
        try:
            known = services.groups.runtime.read(
                group.group_id, lambda shard, _: offsets.initialized_partitions(shard.share, group.group_id)
            )
        except KafkaError as error:
            return DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=error.code, error_message=error.reason or None
            )
        for topic_id, indexes in known.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is not None:
                partitions[topic_id], names[topic_id] = sorted(indexes), topic.name
    else:
        for asked in group.topics:
            topic = image.topics.get(asked.topic_name)
            if topic is None:
                missing.append(_missing(asked.topic_name, asked.partitions))
            else:
                partitions[topic.topic_id], names[topic.topic_id] = asked.partitions, topic.name
    found = yield from summaries(
        services.share_persister,
        group.group_id,
        partitions,
        lambda topic_id, index: _end_offset(services, names[topic_id], index),
    )
    topics = [_described(topic_id, names[topic_id], indexes, found) for topic_id, indexes in partitions.items()]
    return DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, topics=[*topics, *missing])


def _missing(topic_name: str, indexes: "Sequence[int]") -> DescribeShareGroupOffsetsResponseTopic:
    """Return the answer for a topic that does not exist: it has no offsets, which is no error."""
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=_UNKNOWN_OFFSET) for index in indexes
    ]
    return DescribeShareGroupOffsetsResponseTopic(topic_name=topic_name, partitions=partitions)


def _end_offset(services: "ShareGroupServices", topic: str, index: int) -> "Reply[int | KafkaError]":
    """Return the offset that the next committed record of a partition will have, if need be from another broker."""
    others = services.partition_ends
    reply: Reply[int | KafkaError] = Reply()
    try:
        partition = services.partitions.require(topic, index)
        partition.require_leader_log()
        reply.complete(partition.high_watermark)
    except KafkaError as error:
        if others is not None:
            return others.latest(topic, index)
        reply.complete(error)
    return reply


def _described(
    topic_id: UUID, name: str, indexes: "Sequence[int]", found: "Mapping[tuple[UUID, int], Summary]"
) -> DescribeShareGroupOffsetsResponseTopic:
    partitions = [_partition(index, *found[topic_id, index]) for index in indexes]
    return DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=partitions)


def _partition(
    index: int, state: "StateSummary | KafkaError", end: "int | KafkaError | None"
) -> DescribeShareGroupOffsetsResponsePartition:
    if isinstance(state, KafkaError):
        return DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=_UNKNOWN_OFFSET)
    if isinstance(end, KafkaError):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=_UNKNOWN_OFFSET, error_code=end.code, error_message=end.reason or None
        )
    lag = -1 if end is None else end - state.start_offset - state.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=state.start_offset, leader_epoch=state.leader_epoch, lag=lag
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each group and each topic. Topics that were not named are left out of the answer."""
    if not is_served(guarded.services):
        return guarded.handle()
    refused: dict[str, list[DescribeShareGroupOffsetsResponseTopic]] = {}
    permitted = []
    for group in guarded.request.groups:
        if group.topics is None:
            permitted.append(group)
            continue
        seen, hidden = guarded.split(AclOperation.DESCRIBE, AclResourceType.TOPIC, group.topics, lambda each: each.topic_name)
        refused[group.group_id] = [_hidden(each.topic_name, each.partitions) for each in hidden]
        permitted.append(group._replace(topics=seen))

    def convert(response: DescribeShareGroupOffsetsResponse) -> DescribeShareGroupOffsetsResponse:
        groups = [
            group._replace(topics=[*_visible(guarded, group), *refused.get(group.group_id, ())]) for group in response.groups
        ]
        return response._replace(groups=groups)

    return authorize_each(
        guarded._replace(request=guarded.request._replace(groups=tuple(permitted))),
        AclOperation.DESCRIBE,
        AclResourceType.GROUP,
        lambda group: group.group_id,
        field="groups",
        answered="groups",
        convert=convert,
    )


def _hidden(topic_name: str, indexes: "Sequence[int]") -> DescribeShareGroupOffsetsResponseTopic:
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=_UNKNOWN_OFFSET,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="Topic authorization failed.",
        )
        for index in indexes
    ]
    return DescribeShareGroupOffsetsResponseTopic(topic_name=topic_name, partitions=partitions)


def _visible(
    guarded: "GuardedRequest", group: DescribeShareGroupOffsetsResponseGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    return [topic for topic in group.topics if guarded.may_describe_topic(topic.topic_name)]
