"""Heartbeat, versions 0 to 4: a member is there; the answer tells it whether to join again. Since version 3 for static members.

As Kafka, a coordinator that is still loading answers NONE: the member is not to look for another one, nor to join again.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import reads_group
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.heartbeat import (
    HeartbeatRequest,
    HeartbeatResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import GroupServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(services: "GroupServices", _context: "RequestContext", request: HeartbeatRequest) -> "Reply[HeartbeatResponse]":
    """Hand the request to its group's shard. HOT."""
    return services.groups.runtime.write(request.group_id, lambda shard: shard.heartbeat(request)).then(_response)


def _response(outcome: HeartbeatResponse | KafkaError) -> HeartbeatResponse:
    if not isinstance(outcome, KafkaError):
        return outcome
    is_loading = outcome.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else outcome.code)


rule = reads_group
