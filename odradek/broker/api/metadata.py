"""Metadata 0-13: brokers, topics, partitions and their leaders.

Topic ids in responses from version 10 on, in requests since 12 (KIP-516). Topics are auto-created if the client
(``allowAutoTopicCreation``, from version 4 on) and ``auto.create.topics.enable`` agree. Internal flags, and authorized operations
on request (KIP-430). Brokers' addresses are those of the listener that the client used.

Thousands of partitions are described in slices. If all topics are requested, a topic that is deleted meanwhile is left out.

Deliberate gap: none.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.api.acl_messages import (
    CLUSTER_OPERATIONS,
    NO_OPERATIONS,
    TOPIC_OPERATIONS,
    with_cluster_operations,
    with_topic_operations,
)
from odradek.broker.large import TOGETHER, Pieces, Repeated, answer_in_slices
from odradek.broker.security.acl.rules import GuardedRequest, keep_visible, then, with_refused
from odradek.common.acls import AclOperation, AclResourceType
from odradek.common.context import RequestContext
from odradek.controller.metadata.topic import INTERNAL_TOPICS, topic_name_error
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from odradek.broker.api.services import ClusterServices
    from odradek.broker.large import Answer
    from odradek.controller.metadata.topic import Topic

# Faster than the constructor of a named tuple; a cluster has many partitions.
_new: Final = tuple.__new__

_FIRST_BY_ID: Final = 12

pieces = Pieces(("topics",), ("topics",), 100, Repeated.ONCE)
has_unbounded_response = True


def handle(services: "ClusterServices", context: RequestContext, request: MetadataRequest) -> "Answer[MetadataResponse]":
    """Describe the requested topics; all if ``topics`` is null. Missing ones get an error, or the outcome of their creation.

    UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID; INVALID_TOPIC_EXCEPTION for an invalid or missing name. Before version 12,
    INVALID_REQUEST for every topic if any has an id, or no name.
    """
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NO_OPERATIONS
    if request.topics is None:
        return answer_in_slices(services, context, _all(services, context, request, operations))
    if context.version < 12 and any(item.topic_id is not None or item.name is None for item in request.topics):
        # Versions 10 and 11 have a field for the id, but do not support it.
        topics = [_refused(item) for item in request.topics]
    else:
        # A topic that is requested twice is answered once.
        once = {(item.topic_id, item.name): item for item in request.topics}
        refused = _create_missing(services, context, request)
        if sum(_partition_count(services, item) for item in once.values()) > TOGETHER:
            work = _named(services, context, request, list(once.values()), refused, operations)
            return answer_in_slices(services, context, work)
        topics = [_requested(services, context, item, refused, operations) for item in once.values()]
    return _response(services, context, request, topics)


def _response(
    services: "ClusterServices", context: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    cluster = services.cluster
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in cluster.nodes(context.listener_name)
        ],
        cluster_id=services.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=(CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS),
    )


def _all(
    services: "ClusterServices", context: RequestContext, request: MetadataRequest, operations: int
) -> "Generator[None, None, MetadataResponse]":
    topics = []
    image = services.controller.image
    described = 0
    for topic in list(image.topics.values()):
        if image.topics_by_id.get(topic.topic_id) is topic:
            topics.append((yield from _describe_in_slices(services, context, topic, operations)))
            described += len(topic.partitions)
            if described >= TOGETHER:
                described = 0
                yield None
    return _response(services, context, request, topics)


def _partition_count(services: "ClusterServices", item: MetadataRequestTopic) -> int:
    topic = _known(services, item)
    return 0 if topic is None else len(topic.partitions)


def _named(
    services: "ClusterServices",
    context: RequestContext,
    request: MetadataRequest,
    items: "Iterable[MetadataRequestTopic]",
    refused: "Mapping[str, ErrorCode]",
    operations: int,
) -> "Generator[None, None, MetadataResponse]":
    topics = []
    for item in items:
        topic = _known(services, item)
        if topic is None:
            topics.append(_requested(services, context, item, refused, operations))
        else:
            topics.append((yield from _describe_in_slices(services, context, topic, operations)))
        yield None
    return _response(services, context, request, topics)


def _known(services: "ClusterServices", item: MetadataRequestTopic) -> "Topic | None":
    """Return the topic that is requested by id or name, if it exists."""
    image = services.controller.image
    return image.topics.get(item.name or "") if item.topic_id is None else image.topics_by_id.get(item.topic_id)


def _refused(item: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=item.name or "", topic_id=item.topic_id)


def _requested(
    services: "ClusterServices",
    context: RequestContext,
    item: MetadataRequestTopic,
    refused: "Mapping[str, ErrorCode]",
    operations: int,
) -> MetadataResponseTopic:
    topic = _known(services, item)
    if topic is not None:
        return _describe(services, context, topic, list(topic.partitions), operations)
    if item.topic_id is not None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=item.topic_id, topic_authorized_operations=operations
        )
    return MetadataResponseTopic(
        error_code=refused.get(item.name or "", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        name=item.name,
        is_internal=item.name in INTERNAL_TOPICS,
        topic_authorized_operations=operations,
    )


def _create_missing(services: "ClusterServices", context: RequestContext, request: MetadataRequest) -> "Mapping[str, ErrorCode]":
    """Create missing topics where that is allowed. Return the errors of names that cannot be created."""
    known = services.controller.image.topics
    missing = [item.name or "" for item in request.topics or () if item.topic_id is None and item.name not in known]
    if not missing:
        return {}
    if request.allow_auto_topic_creation and services.config["auto.create.topics.enable"]:
        return services.auto_topic_creation.create(missing, context)
    return {name: error.code for name in missing if (error := topic_name_error(name)) is not None}


def _describe_in_slices(
    services: "ClusterServices", context: RequestContext, topic: "Topic", operations: int
) -> "Generator[None, None, MetadataResponseTopic]":
    indexes = list(topic.partitions)
    described = _describe(services, context, topic, indexes[:TOGETHER], operations)
    partitions = list(described.partitions)
    for first in range(TOGETHER, len(indexes), TOGETHER):
        yield None
        partitions += _describe(services, context, topic, indexes[first : first + TOGETHER], operations).partitions
    return described._replace(partitions=partitions)


def _describe(
    services: "ClusterServices", context: RequestContext, topic: "Topic", indexes: "Iterable[int]", operations: int
) -> MetadataResponseTopic:
    state_of, listener_name, version = services.cluster.partition_state, context.listener_name, context.version
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            # A state has a response partition's fields, in the same order.
            _new(MetadataResponsePartition, state_of(topic, index, listener_name, version))
            for index in indexes
        ],
        topic_authorized_operations=operations,
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require DESCRIBE on each topic, and CREATE to auto-create topics. If all are requested, hidden topics are left out.

    To a client without DESCRIBE, missing topics are refused like existing ones.
    """
    topics = guarded.request.topics
    if topics is None:
        return then(
            keep_visible(guarded, guarded.handle(), "topics", partial(_may_see, guarded)), partial(_with_operations, guarded)
        )
    if guarded.context.version < _FIRST_BY_ID and any(topic.topic_id is not None or topic.name is None for topic in topics):
        # The handler refuses all of them.
        return guarded.handle()
    permitted, others = guarded.split(
        AclOperation.DESCRIBE,
        AclResourceType.TOPIC,
        topics,
        lambda topic: guarded.topic_name(topic, by_id=topic.topic_id is not None),
    )
    told = [
        MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=topic.name, topic_id=topic.topic_id)
        for topic in dict.fromkeys(others)
    ]
    uncreated = _not_to_be_created(guarded, permitted)
    told += [
        MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, is_internal=name in INTERNAL_TOPICS)
        for name in sorted(uncreated)
    ]
    permitted = tuple([topic for topic in permitted if topic.topic_id is not None or topic.name not in uncreated])
    answer = then(guarded.handle(guarded.request._replace(topics=permitted)), partial(_with_operations, guarded))
    return with_refused(answer, "topics", told)


def _not_to_be_created(guarded: "GuardedRequest", topics: "Iterable[MetadataRequestTopic]") -> set[str]:
    """Return the missing topics that the client may not auto-create."""
    if not guarded.request.allow_auto_topic_creation or not guarded.services.config["auto.create.topics.enable"]:
        return set()
    known = guarded.services.controller.image.topics
    missing = {topic.name or "" for topic in topics if topic.topic_id is None and topic.name not in known}
    if not missing or guarded.access.allows_cluster(AclOperation.CREATE, tells=False):
        return set()
    return missing - guarded.access.allowed(AclOperation.CREATE, AclResourceType.TOPIC, missing)


def _may_see(guarded: "GuardedRequest", topic: MetadataResponseTopic) -> bool:
    return guarded.access.allows(AclOperation.DESCRIBE, AclResourceType.TOPIC, topic.name or "", tells=False)


def _with_operations(guarded: "GuardedRequest", response: MetadataResponse) -> object:
    """Fill in the client's operations. Without an authorizer, the handler has filled in all operations."""
    response = with_cluster_operations(guarded, response)
    return with_topic_operations(guarded, response) if guarded.request.include_topic_authorized_operations else response
