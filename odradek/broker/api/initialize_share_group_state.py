"""InitializeShareGroupState, version 0: begins the state of share partitions (KIP-932).

The group coordinator asks for it when a share group subscribes to a topic, and when an operator moves the start offset.
FENCED_STATE_EPOCH if the state epoch is below the last one.

Deliberate gap: none.
"""

from odradek.broker.api.share_state_requests import PIECES, RULE, ShareStateApi
from odradek.coordinator.share.requests import InitializeState
from odradek.protocol.message_types.initialize_share_group_state import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

_api = ShareStateApi(
    lambda key, item: InitializeState(key, item.state_epoch, item.start_offset),
    lambda partition, _: PartitionResult(partition=partition),
    PartitionResult,
    lambda topics: InitializeShareGroupStateResponse(results=[InitializeStateResult(*topic) for topic in topics]),
)

pieces = PIECES
handle = _api.handle
rule = RULE
