"""CreatePartitions, versions 0 to 3: raises topics' number of partitions; it cannot be lowered.

Each topic is answered independently; with ``validate_only`` nothing is changed. If a client has changed too many partitions
recently, topics beyond its quota get THROTTLING_QUOTA_EXCEEDED, from version 3 on (KIP-599).

Deliberate gap: ``timeout_ms`` never expires.
"""

from collections import Counter
from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.decisions import NewPartitions, TopicResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TopicChangeServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "TopicChangeServices", context: "RequestContext", request: CreatePartitionsRequest
) -> "Reply[CreatePartitionsResponse]":
    """Add the partitions of ``request``, or only validate that."""
    asked = [_new_partitions(topic) for topic in request.topics]
    quota = services.quotas.mutation_quota(context)

    def respond(outcome: list[TopicResult] | KafkaError) -> CreatePartitionsResponse:
        if isinstance(outcome, KafkaError):
            outcome = [TopicResult(name=topic.name, error=outcome) for topic in asked]
        throttle_ms = 0 if quota is None else quota.throttle_ms
        return CreatePartitionsResponse(results=[_answer(result) for result in outcome], throttle_time_ms=throttle_ms)

    created = services.controller.create_partitions(
        asked, validate_only=request.validate_only, take=None if quota is None else quota.take
    )
    return services.partition_directories.when_caught_up(created).then(respond)


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(
        name=topic.name,
        partition_count=topic.count,
        assignments=None if assignments is None else [assignment.broker_ids for assignment in assignments],
    )


def _answer(result: TopicResult) -> CreatePartitionsTopicResult:
    if result.error is None:
        return CreatePartitionsTopicResult(name=result.name, error_code=ErrorCode.NONE)
    return CreatePartitionsTopicResult(name=result.name, error_code=result.error.code, error_message=result.error.reason or None)


def rule(guarded: "GuardedRequest") -> object:
    """Require ALTER on each topic. The handler refuses topics that are named twice."""
    times_named = Counter(topic.name for topic in guarded.request.topics)
    return authorize_each(
        guarded,
        AclOperation.ALTER,
        AclResourceType.TOPIC,
        lambda topic: topic.name if times_named[topic.name] == 1 else None,
        answered="results",
    )
