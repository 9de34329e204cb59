"""WriteTxnMarkers, versions 1 and 2: a transaction ends on partitions, as a coordinator has decided it, or an operator (KIP-98).

This broker's own coordinator writes its markers without a request; those that come over the wire are from tools that abort a
transaction nobody else will end (KIP-664), under coordinator epoch -1. A partition of ``__consumer_offsets`` tells its group
coordinator. Version 2 says by which transaction version the marker's epoch is to be judged (KIP-1228).

Each partition has its error: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED; where the group
coordinator is not there yet NOT_LEADER_OR_FOLLOWER, as Kafka says it.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.coordinator.runtime.marker import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import TransactionServices


_TRY_AGAIN = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})


def handle(
    services: "TransactionServices", _context: "RequestContext", request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Write each marker to each of its partitions."""
    results = []
    for asked in request.markers:
        marker = EndTxnMarker(
            asked.producer_id,
            asked.producer_epoch,
            asked.coordinator_epoch,
            asked.transaction_result,
            asked.transaction_version,
        )
        topics = [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=_write(services, topic.name, index, marker)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ]
        results.append(WritableTxnMarkerResult(producer_id=asked.producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=results)


def _write(services: "TransactionServices", topic: str, partition: int, marker: EndTxnMarker) -> ErrorCode:
    try:
        services.transactions.write_marker(topic, partition, marker)
    except KafkaError as error:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _TRY_AGAIN else error.code
    return ErrorCode.NONE
