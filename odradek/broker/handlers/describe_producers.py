"""DescribeProducers, version 0: what partitions know of their producers (KIP-664).

For those who look for transactions that nobody will end: ``current_txn_start_offset`` is where a producer's open transaction
begins. INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION; KAFKA_STORAGE_ERROR for a partition that is offline.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.metadata.topic_names import validate_topic_name
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import PartitionServices


def handle(
    services: "PartitionServices", _context: "RequestContext", request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of each partition that ``request`` names."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_answer(services, topic.name, partition) for partition in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _answer(services: "PartitionServices", topic: str, partition: int) -> PartitionResponse:
    try:
        validate_topic_name(topic)
        producers = services.partitions.require(topic, partition).require_log().producers
    except KafkaError as error:
        return PartitionResponse(partition_index=partition, error_code=error.code, error_message=error.reason or None)
    return PartitionResponse(
        partition_index=partition,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start,
            )
            for producer_id, producer in producers.by_id.items()
        ],
    )
