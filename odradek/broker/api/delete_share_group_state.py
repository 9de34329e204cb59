"""DeleteShareGroupState, version 0: deletes the state of share partitions (KIP-932).

The group coordinator asks for it when a share group or its offsets are deleted. It succeeds without a state.

Deliberate gap: none.
"""

from odradek.broker.api.share_state_requests import PIECES, RULE, ShareStateApi
from odradek.coordinator.share.requests import DeleteState
from odradek.protocol.message_types.delete_share_group_state import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

_api = ShareStateApi(
    lambda key, _: DeleteState(key),
    lambda partition, _: PartitionResult(partition=partition),
    PartitionResult,
    lambda topics: DeleteShareGroupStateResponse(results=[DeleteStateResult(*topic) for topic in topics]),
)

pieces = PIECES
handle = _api.handle
rule = RULE
