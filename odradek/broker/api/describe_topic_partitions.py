"""DescribeTopicPartitions 0: topics' partitions, a page at a time (KIP-966).

Topics are sorted by name. A page holds at most ``responsePartitionLimit`` partitions, and never more than
``max.request.partition.size.limit``. If there are more, ``nextCursor`` is where the next page begins. Without topic names all
topics are described. Unknown topics get UNKNOWN_TOPIC_OR_PARTITION, invalid names INVALID_TOPIC_EXCEPTION.
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.api.acl_messages import TOPIC_OPERATIONS, with_topic_operations
from odradek.broker.large import TOGETHER, answer_in_slices, with_pauses
from odradek.broker.security.acl.rules import GuardedRequest, then, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.context import RequestContext
from odradek.controller.metadata.topic import INTERNAL_TOPICS, topic_name_error
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import ClusterServices
    from odradek.broker.large import Answer
    from odradek.controller.metadata.cluster_view import PartitionState
    from odradek.protocol.metadata_records import PartitionRecord

# Partitions without a leader are not an error here. Otherwise the state is that of Metadata.
_NEWEST_METADATA = 13

has_unbounded_response = True


def handle(
    services: "ClusterServices", context: RequestContext, request: DescribeTopicPartitionsRequest
) -> "Answer[DescribeTopicPartitionsResponse]":
    """Describe one page, from the cursor on, in slices. A topic that is deleted meanwhile is unknown.

    Each topic gets INVALID_REQUEST if the cursor's partition is negative, or the cursor's topic is not among the named ones.
    """
    return answer_in_slices(services, context, _page(services, context.listener_name, request))


def _page(
    services: "ClusterServices", listener_name: str, request: DescribeTopicPartitionsRequest
) -> "Generator[None, None, DescribeTopicPartitionsResponse]":
    cursor = request.cursor
    fetch_all = not request.topics
    asked = {topic.name for topic in request.topics}
    if cursor is not None and (cursor.partition_index < 0 or not (fetch_all or cursor.topic_name in asked)):
        refusals = [
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
            for topic in request.topics
        ]
        return DescribeTopicPartitionsResponse(topics=refusals)
    names = sorted(services.controller.image.topics if fetch_all else asked)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    limit = max(min(request.response_partition_limit, services.config["max.request.partition.size.limit"]), 1)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    done = 0
    for name in names:
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if limit <= 0:
            next_cursor = Cursor(topic_name=name, partition_index=first)
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
        described, following = yield from _describe(services, listener_name, name, first, limit)
        topics.append(described)
        done += 1 + len(described.partitions)
        if done >= TOGETHER:
            done = 0
            yield None
        limit -= len(described.partitions)
        if following is not None:
            next_cursor = Cursor(topic_name=name, partition_index=following)
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)
    return DescribeTopicPartitionsResponse(topics=topics)


def _describe(
    services: "ClusterServices", listener_name: str, name: str, first: int, limit: int
) -> "Generator[None, None, tuple[DescribeTopicPartitionsResponseTopic, int | None]]":
    """Return a topic with up to ``limit`` partitions from ``first`` on, and the first partition left out, or None."""
    topic = services.controller.image.topics.get(name)
    if topic is None:
        error = topic_name_error(name)
        return DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is None else error.code,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=TOPIC_OPERATIONS,
        ), None
    end = min(first + limit, len(topic.partitions))
    partitions = yield from with_pauses(
        range(first, end),
        lambda index: _partition(
            services.cluster.partition_state(topic, index, listener_name, _NEWEST_METADATA), topic.partitions[index]
        ),
    )
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=partitions,
    )
    return described, end if end < len(topic.partitions) else None


def _partition(state: "PartitionState", record: "PartitionRecord") -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=state.partition_index,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
        offline_replicas=state.offline_replicas,
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each topic. If all topics are requested, the others are left out."""
    request, cursor = guarded.request, guarded.request.cursor
    is_for_all = not request.topics
    names = set(guarded.services.controller.image.topics) if is_for_all else {topic.name for topic in request.topics}
    if cursor is not None:
        if cursor.partition_index < 0 or not (is_for_all or cursor.topic_name in names):
            return guarded.handle()
        names = {name for name in names if name >= cursor.topic_name}
    allowed = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    told = (
        []
        if is_for_all
        else [
            DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
            for name in sorted(names - allowed)
        ]
    )
    if not allowed:
        return DescribeTopicPartitionsResponse(topics=told)
    permitted = request._replace(
        topics=[TopicRequest(name) for name in sorted(allowed)],
        # A hidden or deleted topic cannot be the place to begin at.
        cursor=None if cursor is None or cursor.topic_name not in allowed else cursor,
    )
    return with_refused(then(guarded.handle(permitted), partial(with_topic_operations, guarded)), "topics", told)
