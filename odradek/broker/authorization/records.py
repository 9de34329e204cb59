"""Rules for the APIs of partitions' records: Produce, Fetch, ListOffsets and the like."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from odradek.broker.authorization.asked import Asked, then, with_refused
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.context import CLOSE_CONNECTION
from odradek.broker.metadata.topic import validate_topic_name
from odradek.broker.replica.fetch_partitions import FetchPartition, FetchPartitions
from odradek.broker.replica.fetch_sessions import ReadableSessions
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types import delete_records as deletion
from odradek.protocol.message_types import describe_producers as producers
from odradek.protocol.message_types import list_offsets as offsets
from odradek.protocol.message_types import offset_for_leader_epoch as epochs
from odradek.protocol.message_types.fetch import FetchRequest, PartitionData
from odradek.protocol.message_types.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from odradek.protocol.produce_request import ProduceRequest

if TYPE_CHECKING:
    from odradek.broker.metadata.topic import Topic
    from odradek.broker.replica.fetch_partitions import TopicKey

_TOPIC: Final = AclResourceType.TOPIC
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_ATTRIBUTES_LOW_BYTE: Final = 22
_TRANSACTIONAL: Final = 0x10


def produce(asked: Asked) -> Any:
    """WRITE on the transactional id of a request with transactional batches, and on each topic."""
    request: ProduceRequest = asked.request
    if _is_transactional(request):
        transactional_id = request.transactional_id
        if transactional_id is None or not asked.access.allows(
            AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            return _all_refused(request)
    by_id = asked.services.controller.image.topics_by_id

    def name_of(topic: tuple[str | bytes, Any]) -> str | None:
        if isinstance(topic[0], str):
            return topic[0]
        found = by_id.get(UUID(bytes=bytes(topic[0])))
        return None if found is None else found.name

    permitted, refused = asked.split(AclOperation.WRITE, _TOPIC, request.topics, name_of)
    if not refused:
        return asked.handle()
    if request.acks == 0:
        # All that its client can notice.
        rest = request._replace(topics=permitted)
        return then(asked.handle(rest), lambda _: CLOSE_CONNECTION, converts_signals=True) if permitted else CLOSE_CONNECTION
    told = [_produce_refusal(topic, _REFUSED) for topic in refused]
    if not permitted:
        return ProduceResponse(responses=told)
    return with_refused(asked.handle(request._replace(topics=permitted)), "responses", told)


def _is_transactional(request: ProduceRequest) -> bool:
    return any(
        records is not None and len(records) > _ATTRIBUTES_LOW_BYTE and records[_ATTRIBUTES_LOW_BYTE] & _TRANSACTIONAL
        for _, batches in request.topics
        for _, records in batches
    )


def _all_refused(request: ProduceRequest) -> Any:
    if request.acks == 0:
        return CLOSE_CONNECTION
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ProduceResponse(responses=[_produce_refusal(topic, code) for topic in request.topics])


def _produce_refusal(topic: tuple[str | bytes, Any], code: ErrorCode) -> TopicProduceResponse:
    key, batches = topic
    partitions = [PartitionProduceResponse(index=index, error_code=code, base_offset=-1) for index, _ in batches]
    if isinstance(key, str):
        return TopicProduceResponse(name=key, partition_responses=partitions)
    return TopicProduceResponse(topic_id=UUID(bytes=bytes(key)), partition_responses=partitions)


def fetch(asked: Asked) -> Any:
    """READ on each topic; of a follower CLUSTER_ACTION on the cluster.

    A session keeps partitions that its client may not read, and refuses them in each answer.
    """
    return asked.handle(services=_FetchServices(asked))


class _FetchServices:
    """The services of a Fetch, with sessions that show the handler only what its client may read."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.fetch_sessions = ReadableSessions(asked.services.fetch_sessions, self._refused, _fetch_refusal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asked.services, name)

    def _refused(self, request: FetchRequest, partitions: FetchPartitions) -> list[FetchPartition]:
        access = self._asked.access
        if request.replica_state.replica_id >= 0 or request.replica_id >= 0:
            return [] if access.allows_cluster(AclOperation.CLUSTER_ACTION) else list(partitions)
        names = {}
        for key in partitions.topic_keys:
            name = self._name_of(key, partitions.of_topic(key))
            if name is not None:
                names[key] = name
        allowed = access.allowed(AclOperation.READ, _TOPIC, list(names.values()))
        return [each for key, name in names.items() if name not in allowed for each in partitions.of_topic(key)]

    def _name_of(self, key: "TopicKey", of_topic: Iterable[FetchPartition]) -> str | None:
        """The name of the topic, also of one that is deleted, if its id has been known in this session."""
        if isinstance(key, str):
            return key
        known: Mapping[UUID, Topic] = self._asked.services.controller.image.topics_by_id
        topic = None if key is None else known.get(key)
        if topic is None:
            return next((each.topic_name for each in of_topic if each.topic_name is not None), None)
        for each in of_topic:
            if each.topic_name is not None:
                break
            each.topic_name = topic.name
        return topic.name


def _fetch_refusal(partition: FetchPartition) -> PartitionData:
    return PartitionData(
        partition_index=partition.partition, error_code=_REFUSED, high_watermark=-1, aborted_transactions=None, records=b""
    )


def list_offsets(asked: Asked) -> Any:
    """DESCRIBE on each topic."""
    permitted, refused = asked.split(AclOperation.DESCRIBE, _TOPIC, asked.request.topics, lambda topic: topic.name)
    told = [
        offsets.ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[offsets.ListOffsetsPartitionResponse(each.partition_index, _REFUSED) for each in topic.partitions],
        )
        for topic in refused
    ]
    return _joined(asked, permitted, told)


def offset_for_leader_epoch(asked: Asked) -> Any:
    """CLUSTER_ACTION on the cluster, of a broker, or DESCRIBE on each topic."""
    if asked.access.allows_cluster(AclOperation.CLUSTER_ACTION, tells=False):
        return asked.handle()
    permitted, refused = asked.split(AclOperation.DESCRIBE, _TOPIC, asked.request.topics, lambda topic: topic.topic)
    told = [
        epochs.OffsetForLeaderTopicResult(
            topic=topic.topic, partitions=[epochs.EpochEndOffset(_REFUSED, each.partition) for each in topic.partitions]
        )
        for topic in refused
    ]
    return _joined(asked, permitted, told)


def delete_records(asked: Asked) -> Any:
    """DELETE on each topic."""
    permitted, refused = asked.split(AclOperation.DELETE, _TOPIC, asked.request.topics, lambda topic: topic.name)
    told = [
        deletion.DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[deletion.DeleteRecordsPartitionResult(each.partition_index, -1, _REFUSED) for each in topic.partitions],
        )
        for topic in refused
    ]
    return _joined(asked, permitted, told)


def describe_producers(asked: Asked) -> Any:
    """READ on each topic whose name can be one."""
    permitted, refused = asked.split(AclOperation.READ, _TOPIC, asked.request.topics, lambda topic: _valid(topic.name))
    told = [
        producers.TopicResponse(
            name=topic.name, partitions=[producers.PartitionResponse(index, _REFUSED) for index in topic.partition_indexes]
        )
        for topic in refused
    ]
    return _joined(asked, permitted, told)


def _valid(name: str) -> str | None:
    try:
        validate_topic_name(name)
    except KafkaError:
        return None
    return name


def _joined(asked: Asked, permitted: list[Any], told: list[Any]) -> Any:
    """The handler's answer about the permitted topics, with what is told of the others."""
    if not told:
        return asked.handle()
    return with_refused(asked.handle(asked.request._replace(topics=permitted)), "topics", told)
