"""DescribeProducers, version 0: the producer state of partitions (KIP-664).

Used to find hanging transactions: ``current_txn_start_offset`` is where a producer's open transaction begins.
INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION; KAFKA_STORAGE_ERROR for a partition that is offline.

Deliberate gap: none.
"""

from itertools import islice
from typing import TYPE_CHECKING, Any

from odradek.broker.large import TOPICS, Pieces, answer_in_slices, each_once, with_pauses
from odradek.broker.security.acl.rules import GuardedRequest, authorize_each
from odradek.common.acls import AclOperation, AclResourceType
from odradek.controller.metadata.topic import topic_name_error, validate_topic_name
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.api.services import SlicedPartitionServices
    from odradek.broker.large import Answer
    from odradek.common.context import RequestContext
    from odradek.storage.log.producer_state import Producer
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partition_indexes"), TOPICS)
has_unbounded_response = True


def handle(
    services: "SlicedPartitionServices", context: "RequestContext", request: DescribeProducersRequest
) -> "Answer[DescribeProducersResponse]":
    """Describe the producers of each partition of ``request``, in slices."""
    return answer_in_slices(services, context, _describe_all(services, request))


def _describe_all(
    services: "SlicedPartitionServices", request: DescribeProducersRequest
) -> "Generator[Reply[Any] | None, Any, DescribeProducersResponse]":
    named = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    answers = iter((yield from each_once(named, lambda partition: _describe(services, *partition))))
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name=topic.name, partitions=list(islice(answers, len(topic.partition_indexes))))
            for topic in request.topics
        ]
    )


def _describe(
    services: "SlicedPartitionServices", topic: str, partition: int
) -> "Generator[Reply[Any] | None, Any, PartitionResponse]":
    try:
        validate_topic_name(topic)
        producers = services.partitions.require(topic, partition).require_log().producers
    except KafkaError as error:
        return PartitionResponse(partition_index=partition, error_code=error.code, error_message=error.reason or None)
    by_id = producers.by_id

    def tell(producer_id: int) -> ProducerState | None:
        producer = by_id.get(producer_id)
        return None if producer is None else _state_of(producer_id, producer)

    described = yield from with_pauses(list(by_id), tell)
    return PartitionResponse(partition_index=partition, active_producers=[each for each in described if each is not None])


def _state_of(producer_id: int, producer: "Producer") -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_start,
    )


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on each topic with a valid name."""
    return authorize_each(
        guarded,
        AclOperation.READ,
        AclResourceType.TOPIC,
        lambda topic: topic.name if topic_name_error(topic.name) is None else None,
    )
