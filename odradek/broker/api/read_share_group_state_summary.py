"""ReadShareGroupStateSummary, versions 0 and 1: share partitions' states without their batches (KIP-932).

The group coordinator reads start offsets by it. Since version 1 the response has the count of records whose delivery is complete
(KIP-1226). A share partition without a state has the start offset -1.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.api.share_state_requests import Conversions, answer_each
from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.coordinator.share.requests import ReadStateSummary
from odradek.protocol.message_types.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.common.context import RequestContext
    from odradek.coordinator.share.state import StateSummary
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partitions"), ("results", "partitions"))


def handle(
    services: "ShareStateServices", _context: "RequestContext", request: ReadShareGroupStateSummaryRequest
) -> "ReadShareGroupStateSummaryResponse | Reply[ReadShareGroupStateSummaryResponse]":
    """Ask the share coordinator for each partition."""
    return answer_each(services, request, _CONVERSIONS)


def _answer(partition: int, summary: "StateSummary") -> PartitionResult:
    return PartitionResult(
        partition=partition,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )


_CONVERSIONS: Final = Conversions(
    lambda key, item: ReadStateSummary(key, item.leader_epoch),
    _answer,
    PartitionResult,
    lambda topics: ReadShareGroupStateSummaryResponse(results=[ReadStateSummaryResult(*topic) for topic in topics]),
)

rule = on_cluster(AclOperation.CLUSTER_ACTION)
