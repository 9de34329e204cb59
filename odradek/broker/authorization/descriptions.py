"""Rules for what clients are told of the cluster and its topics: Metadata, DescribeTopicPartitions, DescribeCluster."""

from collections.abc import Generator
from functools import partial
from typing import Any, Final, TypeVar

from odradek.broker.authorization.asked import Asked, only, then, with_refused
from odradek.broker.authorizer.acls import CLUSTER_NAME, AclOperation, AclResourceType
from odradek.broker.handlers.in_slices import answer_in_slices, with_pauses
from odradek.broker.handlers.topic_description import NO_OPERATIONS
from odradek.broker.metadata.topic import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import describe_topic_partitions as pages
from odradek.protocol.message_types import find_coordinator as coordinators
from odradek.protocol.message_types.describe_cluster import DescribeClusterResponse
from odradek.protocol.message_types.metadata import MetadataRequestTopic, MetadataResponse, MetadataResponseTopic

ResponseT = TypeVar("ResponseT", MetadataResponse, DescribeClusterResponse)

_TOPIC: Final = AclResourceType.TOPIC
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_FIRST_BY_ID: Final = 12
_WITHOUT_MESSAGES: Final = 4
_SHARE_KEY: Final = 2
# The operations of so many topics are found without an interruption: each asks the authorizer eight times.
_OPERATIONS_TOGETHER: Final = 20
_COORDINATED: Final = {
    0: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (AclResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def metadata(asked: Asked) -> Any:
    """DESCRIBE on each topic: others are left out where all are asked for. CREATE to have a topic created.

    What is not there is refused as what is, to a client that may not DESCRIBE it.
    """
    topics = asked.request.topics
    if topics is None:
        return then(only(asked, asked.handle(), "topics", partial(_may_see, asked)), partial(_with_operations, asked))
    if asked.context.version < _FIRST_BY_ID and any(topic.topic_id is not None or topic.name is None for topic in topics):
        # The handler refuses all of them.
        return asked.handle()
    by_id = asked.services.controller.image.topics_by_id

    def name_of(topic: MetadataRequestTopic) -> str | None:
        if topic.topic_id is None:
            return topic.name or ""
        found = by_id.get(topic.topic_id)
        return None if found is None else found.name

    permitted, others = asked.split(AclOperation.DESCRIBE, _TOPIC, topics, name_of)
    told = [MetadataResponseTopic(error_code=_REFUSED, name=topic.name, topic_id=topic.topic_id) for topic in _once(others)]
    uncreated = _not_to_be_created(asked, permitted)
    told += [
        MetadataResponseTopic(error_code=_REFUSED, name=name, is_internal=name in INTERNAL_TOPICS) for name in sorted(uncreated)
    ]
    permitted = [topic for topic in permitted if topic.topic_id is not None or topic.name not in uncreated]
    answer = then(asked.handle(asked.request._replace(topics=permitted)), partial(_with_operations, asked))
    return with_refused(answer, "topics", told)


def _once(topics: list[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    return list(dict.fromkeys(topics))


def _not_to_be_created(asked: Asked, topics: list[MetadataRequestTopic]) -> set[str]:
    """The topics that are not there, and that the client may not have created."""
    if not asked.request.allow_auto_topic_creation or not asked.services.config["auto.create.topics.enable"]:
        return set()
    known = asked.services.controller.image.topics
    missing = {topic.name or "" for topic in topics if topic.topic_id is None and topic.name not in known}
    if not missing or asked.access.allows_cluster(AclOperation.CREATE, tells=False):
        return set()
    return missing - asked.access.allowed(AclOperation.CREATE, _TOPIC, missing)


def _may_see(asked: Asked, topic: MetadataResponseTopic) -> bool:
    return asked.access.allows(AclOperation.DESCRIBE, _TOPIC, topic.name or "", tells=False)


def _with_operations(asked: Asked, response: MetadataResponse) -> Any:
    """Without an authorizer the handler tells all operations."""
    response = _with_cluster_operations(asked, response)
    return _with_topic_operations(asked, response) if asked.request.include_topic_authorized_operations else response


def _with_topic_operations(asked: Asked, response: Any) -> Any:
    def told(topic: Any) -> Any:
        operations = NO_OPERATIONS if topic.name is None else asked.access.operations(_TOPIC, topic.name)
        return topic._replace(topic_authorized_operations=operations)

    def work() -> Generator[None, None, Any]:
        return response._replace(topics=(yield from with_pauses(response.topics, told, _OPERATIONS_TOGETHER)))

    return answer_in_slices(asked.services, asked.context, work())


def _with_cluster_operations(asked: Asked, response: ResponseT) -> ResponseT:
    """What the client may do to the cluster, if it asks for that: nothing, without DESCRIBE."""
    if response.cluster_authorized_operations == NO_OPERATIONS:
        return response
    operations = 0
    if asked.access.allows_cluster(AclOperation.DESCRIBE):
        operations = asked.access.operations(AclResourceType.CLUSTER, CLUSTER_NAME)
    return response._replace(cluster_authorized_operations=operations)


def describe_cluster(asked: Asked) -> Any:
    """Anybody; the operations are the client's."""
    return then(asked.handle(), partial(_with_cluster_operations, asked))


def describe_topic_partitions(asked: Asked) -> Any:
    """DESCRIBE on each topic: others are left out where all are asked for."""
    request, cursor = asked.request, asked.request.cursor
    is_for_all = not request.topics
    names = set(asked.services.controller.image.topics) if is_for_all else {topic.name for topic in request.topics}
    if cursor is not None:
        if cursor.partition_index < 0 or not (is_for_all or cursor.topic_name in names):
            return asked.handle()
        names = {name for name in names if name >= cursor.topic_name}
    allowed = asked.access.allowed(AclOperation.DESCRIBE, _TOPIC, names)
    told = (
        []
        if is_for_all
        else [pages.DescribeTopicPartitionsResponseTopic(error_code=_REFUSED, name=name) for name in sorted(names - allowed)]
    )
    if not allowed:
        return pages.DescribeTopicPartitionsResponse(topics=told)
    permitted = request._replace(
        topics=[pages.TopicRequest(name) for name in sorted(allowed)],
        # A topic that is hidden, or gone, is no place to begin at.
        cursor=None if cursor is None or cursor.topic_name not in allowed else cursor,
    )
    return with_refused(then(asked.handle(permitted), partial(_with_topic_operations, asked)), "topics", told)


def find_coordinator(asked: Asked) -> Any:
    """DESCRIBE on each group or transactional id. CLUSTER_ACTION for what share groups keep."""
    request = asked.request
    if request.key_type == _SHARE_KEY and not asked.access.allows_cluster(AclOperation.CLUSTER_ACTION):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return coordinators.FindCoordinatorResponse(
            coordinators=[_no_coordinator(asked, key, code) for key in request.coordinator_keys]
        )
    if request.key_type not in _COORDINATED:
        return asked.handle()
    resource_type, code = _COORDINATED[request.key_type]
    permitted, others = asked.split(AclOperation.DESCRIBE, resource_type, request.coordinator_keys, str)
    told = [_no_coordinator(asked, key, code) for key in others]
    if told and not permitted:
        return coordinators.FindCoordinatorResponse(coordinators=told)
    return with_refused(asked.handle(request._replace(coordinator_keys=permitted) if told else None), "coordinators", told)


def _no_coordinator(asked: Asked, key: str, code: ErrorCode) -> coordinators.Coordinator:
    message = code.name if asked.context.version < _WITHOUT_MESSAGES else ""
    return coordinators.Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
