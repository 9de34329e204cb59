"""SyncGroup, versions 0 to 5: hand in a generation's assignment, as its leader, or fetch one's own.

Since version 3 for static members (KIP-345), since 5 with the protocol that the client believes in (KIP-559). What is decided
stands in ``coordinator.group.classic.sync``.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from odradek.coordinator.group.config import MemberContext
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.server import Broker
    from odradek.coordinator.group.config import Respond

M: Final = messages(ApiKey.SYNC_GROUP)


def handle(broker: "Broker", context: "RequestContext", request: Any) -> Any:
    """Hand the request to its group's shard."""
    reply: Reply[Any] = Reply()
    member = MemberContext(context.client_id or "", f"/{context.peer[0]}", context.version)
    # Where a write fails, its member may have been answered already; and a member that was given up, later once more.
    respond = reply.complete_once
    broker.groups.runtime.write(
        request.group_id, lambda shard: shard.sync_group(member, request, respond), partial(_finish, respond)
    )
    return reply


def _finish(respond: "Respond", outcome: KafkaError | None) -> None:
    if outcome is not None:
        respond(M.SyncGroupResponse(error_code=outcome.code))
