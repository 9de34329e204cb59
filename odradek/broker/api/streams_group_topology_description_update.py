"""StreamsGroupTopologyDescriptionUpdate, version 0: always answered UNSUPPORTED_VERSION (KIP-1331).

Apache Kafka answers the same unless it has a plugin that stores the descriptions. Its heartbeats ask for a description only then.

Deliberate gap: there are no such plugins for odradek.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.streams_group_heartbeat import is_served
from odradek.common.acls import AclOperation, AclResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import GroupProtocolServices
    from odradek.broker.security.acl.rules import GuardedRequest
    from odradek.common.context import RequestContext


def handle(
    services: "GroupProtocolServices",
    _context: "RequestContext",
    _request: StreamsGroupTopologyDescriptionUpdateRequest,
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse the request."""
    reason = "The broker has no streams group topology description plugin configured." if is_served(services) else None
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=reason)


def rule(guarded: "GuardedRequest") -> object:
    """Require READ on the group."""
    if is_served(guarded.services) and not guarded.allows(AclOperation.READ, AclResourceType.GROUP, guarded.request.group_id):
        return guarded.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return guarded.handle()
