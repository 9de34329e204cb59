"""DeleteShareGroupState, version 0: deletes the state of share partitions (KIP-932).

The group coordinator asks for it when a share group or its offsets are deleted. It succeeds without a state.

Deliberate gap: none.
"""

from typing import TYPE_CHECKING, Final

from odradek.broker.api.share_state_requests import Conversions, answer_each
from odradek.broker.large import Pieces
from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.coordinator.share.requests import DeleteState
from odradek.protocol.message_types.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ShareStateServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply

pieces = Pieces(("topics", "partitions"), ("results", "partitions"))


def handle(
    services: "ShareStateServices", _context: "RequestContext", request: DeleteShareGroupStateRequest
) -> "DeleteShareGroupStateResponse | Reply[DeleteShareGroupStateResponse]":
    """Ask the share coordinator for each partition."""
    return answer_each(services, request, _CONVERSIONS)


_CONVERSIONS: Final = Conversions(
    lambda key, _: DeleteState(key),
    lambda partition, _: PartitionResult(partition=partition),
    PartitionResult,
    lambda topics: DeleteShareGroupStateResponse(results=[DeleteStateResult(*topic) for topic in topics]),
)

rule = on_cluster(AclOperation.CLUSTER_ACTION)
