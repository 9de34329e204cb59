"""ListPartitionReassignments, version 0 (KIP-455): one broker moves no replica, so there are none."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from odradek.common.context import RequestContext

may_answer_much = True


def handle(
    _services: object, _context: "RequestContext", _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """No reassignment, whatever is asked for."""
    return ListPartitionReassignmentsResponse()


rule = on_cluster(AclOperation.DESCRIBE)
