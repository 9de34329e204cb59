"""Rules for topics' lives: CreateTopics, DeleteTopics, CreatePartitions. Where the controller is, as in Kafka."""

from collections import Counter
from typing import Any, Final

from odradek.broker.authorization.asked import Asked, then, with_refused
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import create_partitions as partitions
from odradek.protocol.message_types import create_topics as creations
from odradek.protocol.message_types import delete_topics as deletions

_TOPIC: Final = AclResourceType.TOPIC
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_FIRST_WITH_CONFIGS: Final = 5


def create_topics(asked: Asked) -> Any:
    """CREATE on the cluster or on each topic. What a topic is like is told to who may DESCRIBE_CONFIGS."""
    request = asked.request
    told: list[Any] = []
    if not asked.access.allows_cluster(AclOperation.CREATE, tells=False):
        times_named = Counter(topic.name for topic in request.topics)
        # One that is named twice is refused for that.
        permitted, others = asked.split(
            AclOperation.CREATE, _TOPIC, request.topics, lambda topic: topic.name if times_named[topic.name] == 1 else None
        )
        told = [
            creations.CreatableTopicResult(name=topic.name, error_code=_REFUSED, error_message="Authorization failed.")
            for topic in others
        ]
        request = request._replace(topics=permitted)
    answer = asked.handle(request)
    if asked.context.version >= _FIRST_WITH_CONFIGS:
        answer = then(answer, lambda response: _without_hidden_configs(asked, response))
    return with_refused(answer, "topics", told)


def _without_hidden_configs(asked: Asked, response: creations.CreateTopicsResponse) -> creations.CreateTopicsResponse:
    names = [topic.name for topic in response.topics if not topic.error_code]
    seen = asked.access.allowed(AclOperation.DESCRIBE_CONFIGS, _TOPIC, names, tells=False)
    topics = [
        topic
        if topic.error_code or topic.name in seen
        else topic._replace(
            topic_config_error_code=_REFUSED,
            num_partitions=-1,
            replication_factor=-1,
            configs=creations.CreatableTopicResult().configs,
        )
        for topic in response.topics
    ]
    return response._replace(topics=topics)


def delete_topics(asked: Asked) -> Any:
    """DELETE on the cluster or on each topic. The name of a topic that is given by its id is told to who may DESCRIBE it."""
    request = asked.request
    if not asked.services.config["delete.topic.enable"] or asked.access.allows_cluster(AclOperation.DELETE, tells=False):
        return asked.handle()
    by_id = asked.services.controller.image.topics_by_id
    known = asked.services.controller.image.topics
    times_asked = Counter(request.topics)

    def name_of(topic: deletions.DeleteTopicState) -> str | None:
        """None for what is refused whoever asks."""
        if times_asked[topic] > 1 or (topic.name is None) == (topic.topic_id is None):
            return None
        if topic.topic_id is None:
            return topic.name
        found = by_id.get(topic.topic_id)
        return None if found is None else found.name

    names = [name for topic in request.topics if (name := name_of(topic)) is not None]
    seen = asked.access.allowed(AclOperation.DESCRIBE, _TOPIC, names)
    deletable = asked.access.allowed(AclOperation.DELETE, _TOPIC, names)
    permitted, told = [], []
    for topic in request.topics:
        name = name_of(topic)
        is_missing = topic.topic_id is None and name not in known
        if name is None or (name in seen and (is_missing or name in deletable)):
            permitted.append(topic)
        else:
            is_told = topic.topic_id is None or name in seen
            told.append(
                deletions.DeletableTopicResult(name=name if is_told else None, topic_id=topic.topic_id, error_code=_REFUSED)
            )
    if told and not permitted:
        return deletions.DeleteTopicsResponse(responses=told)
    return with_refused(asked.handle(request._replace(topics=permitted) if told else None), "responses", told)


def create_partitions(asked: Asked) -> Any:
    """ALTER on each topic."""
    request = asked.request
    times_named = Counter(topic.name for topic in request.topics)
    permitted, others = asked.split(
        AclOperation.ALTER, _TOPIC, request.topics, lambda topic: topic.name if times_named[topic.name] == 1 else None
    )
    told = [partitions.CreatePartitionsTopicResult(name=topic.name, error_code=_REFUSED) for topic in others]
    if told and not permitted:
        return partitions.CreatePartitionsResponse(results=told)
    return with_refused(asked.handle(request._replace(topics=permitted) if told else None), "results", told)
