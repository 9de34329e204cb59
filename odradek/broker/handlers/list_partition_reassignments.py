"""ListPartitionReassignments, version 0 (KIP-455): one broker moves no replica, so there are none."""

from typing import TYPE_CHECKING, Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker

M = messages(ApiKey.LIST_PARTITION_REASSIGNMENTS)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:  # noqa: ARG001
    """No reassignment, whatever ``request`` asks for."""
    return M.ListPartitionReassignmentsResponse()
