"""ReadShareGroupState, version 0: the state of share partitions, for their leaders (KIP-932).

A new leader reads the state before it serves the share partition. FENCED_LEADER_EPOCH if a later leader has done so already,
INVALID_REQUEST without a state.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.share_state_requests import PIECES, RULE, ShareStateApi
from odradek.coordinator.share.requests import ReadState
from odradek.protocol.message_types.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

if TYPE_CHECKING:
    from odradek.coordinator.share.state import PartitionState


def _answer(partition: int, state: "PartitionState") -> PartitionResult:
    return PartitionResult(
        partition=partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[StateBatch(*batch) for batch in state.batches],
    )


_api = ShareStateApi(
    lambda key, item: ReadState(key, item.leader_epoch),
    _answer,
    PartitionResult,
    lambda topics: ReadShareGroupStateResponse(results=[ReadStateResult(*topic) for topic in topics]),
)

pieces = PIECES
handle = _api.handle
rule = RULE
