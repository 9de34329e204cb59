"""CreateTopics, versions 2 to 7.

Each topic succeeds or fails independently. All new topics are created at once, by one batch of the metadata log. From version 5
on the response has partitions, replication factor and the configs in effect (KIP-525), from version 7 the topic id (KIP-516).
With ``validate_only`` nothing is created; the response is the same, with a meaningless id.

If a client has changed too many partitions recently, topics beyond its quota get THROTTLING_QUOTA_EXCEEDED, from version 6 on
(KIP-599). Before that its topics are created, and it is throttled.

Deliberate gaps: no ``create.topic.policy.class.name``. ``timeout_ms`` never expires, since a topic exists when the response is
sent.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.security.acl.rules import GuardedRequest, then, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.config.describe import topic_entries
from odradek.common.config.dynamic import ConfigView
from odradek.controller.metadata.decisions import NewTopic, TopicResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TopicChangeServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


_FIRST_WITH_CONFIGS: Final = 5

has_unbounded_response = True


def handle(
    services: "TopicChangeServices", context: "RequestContext", request: CreateTopicsRequest
) -> "Reply[CreateTopicsResponse]":
    """Create the topics of ``request``, or only validate that."""
    asked = [_new_topic(topic) for topic in request.topics]
    quota = services.quotas.mutation_quota(context)

    def respond(outcome: list[TopicResult] | KafkaError) -> CreateTopicsResponse:
        if isinstance(outcome, KafkaError):
            outcome = [TopicResult(name=topic.name, error=outcome) for topic in asked]
        topics = [_answer(result) for result in outcome]
        if context.version >= _FIRST_WITH_CONFIGS:
            topics = _with_configs(services, asked, topics)
        return CreateTopicsResponse(topics=topics, throttle_time_ms=0 if quota is None else quota.throttle_ms)

    created = services.controller.create_topics(
        asked, validate_only=request.validate_only, take=None if quota is None else quota.take
    )
    return services.partition_directories.when_caught_up(created).then(respond)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        configs=[(config.name, config.value) for config in topic.configs],
    )


def _answer(result: TopicResult) -> CreatableTopicResult:
    if result.error is not None:
        return CreatableTopicResult(name=result.name, error_code=result.error.code, error_message=result.error.reason or None)
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        num_partitions=result.partition_count,
        replication_factor=result.replication_factor,
    )


def _with_configs(
    services: "TopicChangeServices", asked: list[NewTopic], topics: list[CreatableTopicResult]
) -> list[CreatableTopicResult]:
    """Return the answers. Topics that were created get the configs in effect."""
    image = services.controller.image
    view = ConfigView(services.config, image.configs, image.topics.__contains__)
    overrides = {topic.name: tuple([each for each in topic.configs if each[1] is not None]) for topic in asked}
    # Topics of one request usually have the same overrides.
    told: dict[tuple[tuple[str, str | None], ...], list[CreatableTopicConfigs]] = {}
    for topic in topics:
        own = overrides.get(topic.name, ())
        if not topic.error_code and own not in told:
            told[own] = _configs(view, {name: value for name, value in own if value is not None})
    return [topic if topic.error_code else topic._replace(configs=told[overrides[topic.name]]) for topic in topics]


def _configs(view: ConfigView, overrides: dict[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in sorted(topic_entries(view, overrides))
    ]


def rule(guarded: "GuardedRequest") -> object:
    """Require CREATE on the cluster or on each topic. A topic's details are shown only with DESCRIBE_CONFIGS on it."""
    request = guarded.request
    told: list[Any] = []
    if not guarded.access.allows_cluster(AclOperation.CREATE, tells=False):
        times_named = Counter(topic.name for topic in request.topics)
        # The handler refuses topics that are named twice.
        permitted, others = guarded.split(
            AclOperation.CREATE,
            AclResourceType.TOPIC,
            request.topics,
            lambda topic: topic.name if times_named[topic.name] == 1 else None,
        )
        told = [
            CreatableTopicResult(
                name=topic.name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message="Authorization failed."
            )
            for topic in others
        ]
        request = request._replace(topics=permitted)
    answer = guarded.handle(request)
    if guarded.context.version >= _FIRST_WITH_CONFIGS:
        answer = then(answer, lambda response: _without_hidden_configs(guarded, response))
    return with_refused(answer, "topics", told)


def _without_hidden_configs(guarded: "GuardedRequest", response: CreateTopicsResponse) -> CreateTopicsResponse:
    names = [topic.name for topic in response.topics if not topic.error_code]
    seen = guarded.access.allowed(AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, names, tells=False)
    topics = [
        topic
        if topic.error_code or topic.name in seen
        else topic._replace(
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            num_partitions=-1,
            replication_factor=-1,
            configs=CreatableTopicResult().configs,
        )
        for topic in response.topics
    ]
    return response._replace(topics=topics)
