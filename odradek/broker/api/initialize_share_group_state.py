"""InitializeShareGroupState, version 0: begins the state of share partitions (KIP-932).

The group coordinator asks for it when a share group subscribes to a topic, and when an operator moves the start offset.
FENCED_STATE_EPOCH if the state epoch is below the last one.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.api.share_state_requests import Conversions, answer_each
from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.coordinator.share.requests import InitializeState
from odradek.protocol.message_types.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partitions"), ("results", "partitions"))


def handle(
    services: "ShareStateServices", _context: "RequestContext", request: InitializeShareGroupStateRequest
) -> "InitializeShareGroupStateResponse | Reply[InitializeShareGroupStateResponse]":
    """Ask the share coordinator for each partition."""
    return answer_each(services, request, _CONVERSIONS)


_CONVERSIONS: Final = Conversions(
    lambda key, item: InitializeState(key, item.state_epoch, item.start_offset),
    lambda partition, _: PartitionResult(partition=partition),
    PartitionResult,
    lambda topics: InitializeShareGroupStateResponse(results=[InitializeStateResult(*topic) for topic in topics]),
)

rule = on_cluster(AclOperation.CLUSTER_ACTION)
