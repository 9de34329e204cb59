"""ReadShareGroupStateSummary, versions 0 and 1: share partitions' states without their batches (KIP-932).

The group coordinator reads start offsets by it. Since version 1 the response has the count of records whose delivery is complete
(KIP-1226). A share partition without a state has the start offset -1.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.share_state_requests import PIECES, RULE, ShareStateApi
from odradek.coordinator.share.requests import ReadStateSummary
from odradek.protocol.message_types.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

if TYPE_CHECKING:
    from odradek.coordinator.share.state import StateSummary


def _answer(partition: int, summary: "StateSummary") -> PartitionResult:
    return PartitionResult(
        partition=partition,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )


_api = ShareStateApi(
    lambda key, item: ReadStateSummary(key, item.leader_epoch),
    _answer,
    PartitionResult,
    lambda topics: ReadShareGroupStateSummaryResponse(results=[ReadStateSummaryResult(*topic) for topic in topics]),
)

pieces = PIECES
handle = _api.handle
rule = RULE
