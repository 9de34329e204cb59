"""DeleteTopics, versions 1 to 6.

Topics are named, or given by id from version 6 on (KIP-516). Their partitions are gone when the response is sent; files are
removed in the background. As in Kafka, internal topics may be deleted like any other; they are created again when a coordinator
needs them. `delete.topic.enable=false` refuses the request: TOPIC_DELETION_DISABLED, or before version 3, which has no such
code, INVALID_REQUEST. A name or id given twice, and a name whose id is given too, is INVALID_REQUEST for that topic.

If a client has changed too many partitions recently, topics beyond its quota get THROTTLING_QUOTA_EXCEEDED, from version 5 on
(KIP-599).

Deliberate gap: ``timeout_ms`` never expires.
"""

from collections import Counter
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.security.acl.rules import GuardedRequest, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.api.services import TopicChangeServices
    from odradek.broker.quotas.client_quota_manager import MutationQuota
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.controller import Controller
    from odradek.timing.reply import Reply

has_unbounded_response = True


def handle(
    services: "TopicChangeServices", context: "RequestContext", request: DeleteTopicsRequest
) -> "DeleteTopicsResponse | Reply[DeleteTopicsResponse]":
    """Delete the topics of ``request``."""
    if not services.config["delete.topic.enable"]:
        code = ErrorCode.INVALID_REQUEST if context.version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        error = KafkaError(code, "Topic deletion is disabled.")
        return DeleteTopicsResponse(responses=[_refusal(error, topic.name, topic.topic_id) for topic in request.topics])
    names, responses = _select(services.controller, request.topics)
    quota = services.quotas.mutation_quota(context)
    if quota is not None:
        responses += _over_quota(services.controller, names, quota)

    def respond(outcome: set[UUID] | KafkaError) -> DeleteTopicsResponse:
        if isinstance(outcome, KafkaError):
            done = [_refusal(outcome, name, topic_id) for topic_id, name in names.items()]
        else:
            gone = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "The topic has been deleted meanwhile.")
            done = [
                DeletableTopicResult(name=name, topic_id=topic_id) if topic_id in outcome else _refusal(gone, name, topic_id)
                for topic_id, name in names.items()
            ]
        return DeleteTopicsResponse(responses=[*responses, *done], throttle_time_ms=0 if quota is None else quota.throttle_ms)

    deleted = services.controller.delete_topics(names)
    return services.partition_directories.when_caught_up(deleted).then(respond)


def _over_quota(controller: "Controller", names: dict[UUID, str], quota: "MutationQuota") -> list[DeletableTopicResult]:
    """Remove topics that go beyond the quota from ``names``, and return their answers."""
    refusals = []
    for topic_id, name in list(names.items()):
        try:
            quota.take(len(controller.image.topics_by_id[topic_id].partitions))
        except KafkaError as error:
            del names[topic_id]
            refusals.append(_refusal(error, name, topic_id))
    return refusals


def _select(controller: "Controller", topics: "Iterable[DeleteTopicState]") -> tuple[dict[UUID, str], list[DeletableTopicResult]]:
    """Return the topics to delete, id to name, and the answers for all others."""
    responses = []
    names: Counter[str] = Counter()
    ids: Counter[UUID] = Counter()
    for topic in topics:
        if topic.topic_id is None and topic.name is None:
            responses.append(_refusal(_invalid("Give a topic's name or its id.")))
        elif topic.topic_id is None:
            names[topic.name or ""] += 1
        elif topic.name is None:
            ids[topic.topic_id] += 1
        else:
            responses.append(_refusal(_invalid("Give a topic's name or its id, not both."), topic.name, topic.topic_id))
    selected: dict[UUID, str] = {}
    for topic_id, times in ids.items():
        known = controller.image.topics_by_id.get(topic_id)
        if times > 1:
            responses.append(_refusal(_invalid("Duplicate topic id."), None, topic_id))
        elif known is None:
            responses.append(_refusal(KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has this id."), None, topic_id))
        else:
            selected[topic_id] = known.name
    for name, times in names.items():
        known = controller.image.topics.get(name)
        if times > 1:
            responses.append(_refusal(_invalid("Duplicate topic name."), name))
        elif known is None:
            responses.append(_refusal(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic."), name))
        elif known.topic_id in ids:
            # Kafka answers once for the pair, and deletes neither.
            selected.pop(known.topic_id, None)
            responses.append(_refusal(_invalid("The request also has the topic's id."), name, known.topic_id))
        else:
            selected[known.topic_id] = name
    return selected, responses


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _refusal(error: KafkaError, name: str | None = None, topic_id: UUID | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.reason or None)


def rule(guarded: "GuardedRequest") -> object:
    """Require DELETE on the cluster or on each topic. An id's topic name is shown only with DESCRIBE on the topic."""
    request = guarded.request
    if not guarded.services.config["delete.topic.enable"] or guarded.access.allows_cluster(AclOperation.DELETE, tells=False):
        return guarded.handle()
    known = guarded.services.controller.image.topics
    times_asked = Counter(request.topics)

    def name_of(topic: DeleteTopicState) -> str | None:
        """Return the name to check; None for topics that are refused to every client."""
        if times_asked[topic] > 1 or (topic.name is None) == (topic.topic_id is None):
            return None
        if topic.topic_id is None:
            return topic.name
        return guarded.topic_name(topic, by_id=True)

    names = [name for topic in request.topics if (name := name_of(topic)) is not None]
    seen = guarded.access.allowed(AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    deletable = guarded.access.allowed(AclOperation.DELETE, AclResourceType.TOPIC, names)
    permitted, told = [], []
    for topic in request.topics:
        name = name_of(topic)
        is_missing = topic.topic_id is None and name not in known
        if name is None or (name in seen and (is_missing or name in deletable)):
            permitted.append(topic)
        else:
            may_be_named = topic.topic_id is None or name in seen
            told.append(
                DeletableTopicResult(
                    name=name if may_be_named else None, topic_id=topic.topic_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                )
            )
    if told and not permitted:
        return DeleteTopicsResponse(responses=told)
    return with_refused(guarded.handle(request._replace(topics=permitted) if told else None), "responses", told)
