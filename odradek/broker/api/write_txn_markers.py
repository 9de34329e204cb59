"""WriteTxnMarkers, versions 1 and 2: ends transactions on partitions, as a coordinator or an operator decided (KIP-98).

This broker's own coordinator writes markers here without a request. Requests come from other brokers, or from tools that abort
hanging transactions (KIP-664), with coordinator epoch -1. A marker in ``__consumer_offsets`` is passed on to the group
coordinator. Version 2 says by which transaction version the marker's epoch is checked (KIP-1228).

Each partition has its error: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED. While the group
coordinator is not ready, it is NOT_LEADER_OR_FOLLOWER, as in Kafka.

Deliberate gap: none.
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.large import FEW, Pieces, now_or_later
from odradek.common.acls import AclOperation
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.timing.reply import Reply, all_of, replied

if TYPE_CHECKING:
    from odradek.broker.api.services import TransactionServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext


_TRY_AGAIN = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})

pieces = Pieces(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"), FEW)


def handle(
    services: "TransactionServices", _context: "RequestContext", request: WriteTxnMarkersRequest
) -> "WriteTxnMarkersResponse | Reply[WriteTxnMarkersResponse]":
    """Write each marker to each of its partitions. Returns a Reply while a marker is not replicated yet."""
    replies: list[Reply[KafkaError | None]] = []
    for asked in request.markers:
        marker = EndTxnMarker(
            asked.producer_id,
            asked.producer_epoch,
            asked.coordinator_epoch,
            asked.transaction_result,
            asked.transaction_version,
        )
        for topic in asked.topics:
            replies += [_write(services, topic.name, index, marker) for index in topic.partition_indexes]
    written = all_of(replies)
    written.is_decided = True
    return now_or_later(written.then(partial(_response, request)))


def _response(request: WriteTxnMarkersRequest, errors: list[KafkaError | None]) -> WriteTxnMarkersResponse:
    """Return the response. ``errors`` are in the order of the request's partitions."""
    told = map(_code_of, errors)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=asked.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[WritableTxnMarkerPartitionResult(index, next(told)) for index in topic.partition_indexes],
                    )
                    for topic in asked.topics
                ],
            )
            for asked in request.markers
        ]
    )


def _write(services: "TransactionServices", topic: str, partition: int, marker: EndTxnMarker) -> Reply[KafkaError | None]:
    try:
        return services.transactions.write_marker_here(topic, partition, marker) or replied(None)
    except KafkaError as error:
        return replied(error)


def _code_of(error: KafkaError | None) -> ErrorCode:
    if error is None:
        return ErrorCode.NONE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _TRY_AGAIN else error.code


def rule(guarded: "GuardedRequest") -> object:
    """Require ALTER (for tools) or CLUSTER_ACTION (for brokers) on the cluster."""
    access = guarded.access
    if access.allows_cluster(AclOperation.ALTER, tells=False) or access.allows_cluster(AclOperation.CLUSTER_ACTION):
        return guarded.handle()
    return guarded.refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
