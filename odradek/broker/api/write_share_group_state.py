"""WriteShareGroupState, versions 0 and 1: a leader's change of the state of share partitions (KIP-932).

Since version 1 it has the count of records whose delivery is complete (KIP-1226). FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH if
there is a later leader or state, INVALID_REQUEST without a state.

Deliberate gap: none.
"""

from odradek.broker.api.share_state_requests import PIECES, RULE, ShareStateApi
from odradek.coordinator.share.requests import WriteState
from odradek.coordinator.share.state import SharePartitionKey, StateBatch
from odradek.protocol.message_types.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)


def _ask(key: SharePartitionKey, item: PartitionData) -> WriteState:
    batches = [StateBatch(*batch) for batch in item.state_batches]
    return WriteState(key, item.state_epoch, item.leader_epoch, item.start_offset, item.delivery_complete_count, batches)


_api = ShareStateApi(
    _ask,
    lambda partition, _: PartitionResult(partition=partition),
    PartitionResult,
    lambda topics: WriteShareGroupStateResponse(results=[WriteStateResult(*topic) for topic in topics]),
)

pieces = PIECES
handle = _api.handle
rule = RULE
