"""Metadata 0-13: brokers, topics, partitions and their leader, which is this broker.

Topic ids (KIP-516, from version 10 on; by id since 12), auto-creation where the client and ``auto.create.topics.enable`` agree
(``allowAutoTopicCreation``, from version 4 on), internal flags, authorised operations on request (KIP-430), the address of the
listener the client came in by.

Left out: authorisation (everybody may do everything), racks, offline replicas of other brokers.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.context import RequestContext
from odradek.broker.handlers.topic_description import CLUSTER_OPERATIONS, NO_OPERATIONS, TOPIC_OPERATIONS, partition_state
from odradek.broker.metadata.topic_names import INTERNAL_TOPICS, validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.handlers.services import ClusterServices
    from odradek.broker.metadata.topic import Topic

# The constructor of a named tuple is slower, and a cluster has many partitions.
_new: Final = tuple.__new__


def handle(services: "ClusterServices", context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """All topics where ``topics`` is null; unknown ones with UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, or as created now.

    INVALID_TOPIC_EXCEPTION for a name that no topic can have, and for none. Before version 12, INVALID_REQUEST for each topic
    where one has an id, or no name.
    """
    image = services.controller.image
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NO_OPERATIONS
    if request.topics is None:
        topics = [_describe(services, topic, operations) for topic in image.topics.values()]
    elif context.version < 12 and any(item.topic_id is not None or item.name is None for item in request.topics):
        # Versions 10 and 11 have a place for an id and do not use it.
        topics = [_refused(item) for item in request.topics]
    else:
        # One that is asked for twice is told once.
        once = {(item.topic_id, item.name): item for item in request.topics}
        refused = _create_missing(services, request)
        topics = [_requested(services, item, refused, operations) for item in once.values()]
    host, port = services.advertised(context.listener_name)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=services.node_id, host=host, port=port, rack=services.rack)],
        cluster_id=services.cluster_id,
        controller_id=services.node_id,
        topics=topics,
        cluster_authorized_operations=(CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NO_OPERATIONS),
    )


def _refused(item: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=item.name or "", topic_id=item.topic_id)


def _requested(
    services: "ClusterServices", item: MetadataRequestTopic, refused: "Mapping[str, ErrorCode]", operations: int
) -> MetadataResponseTopic:
    image = services.controller.image
    if item.topic_id is not None:
        topic = image.topics_by_id.get(item.topic_id)
        if topic is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=item.topic_id, topic_authorized_operations=operations
            )
        return _describe(services, topic, operations)
    name = item.name or ""
    topic = image.topics.get(name)
    if topic is None:
        return MetadataResponseTopic(
            error_code=refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            name=item.name,
            is_internal=item.name in INTERNAL_TOPICS,
            topic_authorized_operations=operations,
        )
    return _describe(services, topic, operations)


def _create_missing(services: "ClusterServices", request: MetadataRequest) -> "Mapping[str, ErrorCode]":
    """Have the topics created that are not there, where that is allowed; why some cannot be there, by name."""
    known = services.controller.image.topics
    missing = [item.name or "" for item in request.topics or () if item.topic_id is None and item.name not in known]
    if not missing:
        return {}
    if request.allow_auto_topic_creation and services.config["auto.create.topics.enable"]:
        return services.auto_topic_creation.create(missing)
    refused: dict[str, ErrorCode] = {}
    for name in missing:
        try:
            validate_topic_name(name)
        except KafkaError as error:
            refused[name] = error.code
    return refused


def _describe(services: "ClusterServices", topic: "Topic", operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            # A state has the fields of a partition in the response, in their order.
            _new(MetadataResponsePartition, partition_state(services, topic.name, index))
            for index in topic.partitions
        ],
        topic_authorized_operations=operations,
    )
