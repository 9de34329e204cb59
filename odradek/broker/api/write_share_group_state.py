"""WriteShareGroupState, versions 0 and 1: a leader's change of the state of share partitions (KIP-932).

Since version 1 it has the count of records whose delivery is complete (KIP-1226). FENCED_LEADER_EPOCH and FENCED_STATE_EPOCH if
there is a later leader or state, INVALID_REQUEST without a state.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.api.share_state_requests import Conversions, answer_each
from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.coordinator.share.requests import WriteState
from odradek.coordinator.share.state import SharePartitionKey, StateBatch
from odradek.protocol.message_types.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partitions"), ("results", "partitions"))


def handle(
    services: "ShareStateServices", _context: "RequestContext", request: WriteShareGroupStateRequest
) -> "WriteShareGroupStateResponse | Reply[WriteShareGroupStateResponse]":
    """Ask the share coordinator for each partition."""
    return answer_each(services, request, _CONVERSIONS)


def _ask(key: SharePartitionKey, item: PartitionData) -> WriteState:
    batches = [StateBatch(*batch) for batch in item.state_batches]
    return WriteState(key, item.state_epoch, item.leader_epoch, item.start_offset, item.delivery_complete_count, batches)


_CONVERSIONS: Final = Conversions(
    _ask,
    lambda partition, _: PartitionResult(partition=partition),
    PartitionResult,
    lambda topics: WriteShareGroupStateResponse(results=[WriteStateResult(*topic) for topic in topics]),
)

rule = on_cluster(AclOperation.CLUSTER_ACTION)
