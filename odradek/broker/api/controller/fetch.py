"""Fetch, versions 4 to 18: observers fetch the metadata log, the only log here (KIP-595, KIP-630, KIP-853, KIP-1166)."""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.message_types.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import QuorumServices
    from odradek.timing.reply import Reply


def handle(
    services: "QuorumServices", context: "RequestContext", request: FetchRequest
) -> "FetchResponse | Reply[FetchResponse]":
    """Return the records behind the observer's end, now or when there are some."""
    return services.leader.fetch(request, context.listener_name)


rule = on_cluster(AclOperation.CLUSTER_ACTION)
