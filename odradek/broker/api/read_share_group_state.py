"""ReadShareGroupState, version 0: the state of share partitions, for their leaders (KIP-932).

A new leader reads the state before it serves the share partition. FENCED_LEADER_EPOCH if a later leader has done so already,
INVALID_REQUEST without a state.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.api.share_state_requests import Conversions, answer_each
from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.coordinator.share.requests import ReadState
from odradek.protocol.message_types.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.common.context import RequestContext
    from odradek.coordinator.share.state import PartitionState
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partitions"), ("results", "partitions"))


def handle(
    services: "ShareStateServices", _context: "RequestContext", request: ReadShareGroupStateRequest
) -> "ReadShareGroupStateResponse | Reply[ReadShareGroupStateResponse]":
    """Ask the share coordinator for each partition."""
    return answer_each(services, request, _CONVERSIONS)


def _answer(partition: int, state: "PartitionState") -> PartitionResult:
    return PartitionResult(
        partition=partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[StateBatch(*batch) for batch in state.batches],
    )


_CONVERSIONS: Final = Conversions(
    lambda key, item: ReadState(key, item.leader_epoch),
    _answer,
    PartitionResult,
    lambda topics: ReadShareGroupStateResponse(results=[ReadStateResult(*topic) for topic in topics]),
)

rule = on_cluster(AclOperation.CLUSTER_ACTION)
