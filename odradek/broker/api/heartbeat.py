"""Heartbeat, versions 0 to 4: a member is alive. The answer says whether to rejoin. Static members since version 3.

As in Kafka, a coordinator that is still loading answers NONE: the member must neither look for another one nor rejoin.
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
    """Pass the request to its group's shard. HOT."""
    return services.groups.runtime.write(request.group_id, lambda shard: shard.heartbeat(request)).then(_response)


def _response(outcome: HeartbeatResponse | KafkaError) -> HeartbeatResponse:
    if not isinstance(outcome, KafkaError):
        return outcome
    is_loading = outcome.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else outcome.code)


rule = reads_group
